"""ncnn's options, for the programs that run it."""
import pathlib
import sys

REDUCED = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_packed", "use_bf16_storage",
           "use_int8_packed", "use_int8_storage", "use_int8_arithmetic", "use_int8_inference")


def set_options(net, chosen, plain, more):
    """Turns on what is chosen, nothing in 16 bits where that is asked for, and what `more` says (NAME=0|1,...); what ncnn has
    no such option for is an error."""
    chosen = dict(chosen)
    if plain:
        chosen.update({name: False for name in REDUCED if hasattr(net.opt, name)})
    for one in filter(None, more.split(",")):
        name, _, value = one.partition("=")
        if value not in ("0", "1") or not hasattr(net.opt, name):
            sys.exit(f"{pathlib.Path(sys.argv[0]).name}: --options: found '{one}', expected an option of ncnn's with =0 or =1")
        chosen[name] = value == "1"
    for name, value in chosen.items():
        setattr(net.opt, name, value)
