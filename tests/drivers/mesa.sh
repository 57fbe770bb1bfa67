# Mesa's software driver as it comes.
use_mesa
