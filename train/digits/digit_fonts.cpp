#include "train/digits/digit_fonts.h"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H
#include FT_SFNT_NAMES_H
#include FT_TRUETYPE_IDS_H

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <system_error>

#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_called_font(const Path& path) {
  const std::string suffix = lower(path.extension().string());
  return suffix == ".ttf" || suffix == ".otf" || suffix == ".ttc";
}

std::vector<Path> font_files(std::span<const Path> places) {
  std::vector<Path> files;
  for (const Path& place : places) {
    std::error_code error;
    if (!std::filesystem::is_directory(place, error)) {
      if (std::filesystem::is_regular_file(place, error)) files.push_back(place);
      continue;
    }
    const auto options = std::filesystem::directory_options::skip_permission_denied;
    for (std::filesystem::recursive_directory_iterator entry(place, options, error), end;
         !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (is_called_font(entry->path()) && entry->is_regular_file(ignored)) files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

// Printable ASCII of a name that is stored as UTF-16, big-endian.
std::string ascii_of_utf16(const FT_SfntName& name) {
  std::string text;
  for (FT_UInt i = 0; i + 1 < name.string_len && text.size() < 100; i += 2) {
    const bool ascii = name.string[i] == 0 && name.string[i + 1] >= 32 && name.string[i + 1] < 127;
    text += ascii ? static_cast<char>(name.string[i + 1]) : '?';
  }
  return text;
}

std::string printable(const char* name) {
  std::string text;
  for (; name != nullptr && *name != '\0' && text.size() < 100; ++name)
    text += *name >= 32 && *name < 127 ? *name : '?';
  return text;
}

// The family with all its weights ("Lato"), where the font has that name besides the one that old programs
// see ("Lato Light").
std::string family_of(FT_Face face, const Path& file) {
  for (FT_UInt i = 0; i < FT_Get_Sfnt_Name_Count(face); ++i) {
    FT_SfntName name;
    if (FT_Get_Sfnt_Name(face, i, &name) != 0 || name.name_id != TT_NAME_ID_TYPOGRAPHIC_FAMILY) continue;
    if (name.platform_id == TT_PLATFORM_MICROSOFT && name.string_len > 1) return ascii_of_utf16(name);
  }
  const std::string family = printable(face->family_name);
  return family.empty() ? printable(file.stem().string().c_str()) : family;
}

std::optional<GlyphOutline> outline_of(FT_Face face, FT_UInt glyph) {
  if (FT_Load_Glyph(face, glyph, FT_LOAD_NO_SCALE | FT_LOAD_NO_HINTING) != 0) return std::nullopt;
  if (face->glyph->format != FT_GLYPH_FORMAT_OUTLINE) return std::nullopt;
  const FT_Outline& from = face->glyph->outline;
  constexpr int most_points = 4000;
  if (from.n_points < 3 || from.n_points > most_points || from.n_contours < 1) return std::nullopt;
  GlyphOutline outline;
  const double scale = static_cast<double>(GlyphOutline::units_per_em) / face->units_per_EM;
  for (int i = 0; i < from.n_points; ++i) {
    const double x = static_cast<double>(from.points[i].x) * scale,
                 y = static_cast<double>(from.points[i].y) * scale;
    if (std::abs(x) > 10 * GlyphOutline::units_per_em || std::abs(y) > 10 * GlyphOutline::units_per_em)
      return std::nullopt;
    outline.x.push_back(static_cast<int32_t>(std::floor(x + 0.5)));
    outline.y.push_back(static_cast<int32_t>(std::floor(y + 0.5)));
    outline.tags.push_back(static_cast<uint8_t>(from.tags[i]));
  }
  for (int i = 0; i < from.n_contours; ++i)
    outline.contour_ends.push_back(static_cast<uint16_t>(from.contours[i]));
  return outline;
}

std::optional<DigitFace> face_of(FT_Face face, const Path& file, std::string_view characters) {
  if (!FT_IS_SCALABLE(face) || face->units_per_EM == 0) return std::nullopt;
  if (FT_Select_Charmap(face, FT_ENCODING_UNICODE) != 0) return std::nullopt;
  DigitFace digits{.family = family_of(face, file),
                   .style = printable(face->style_name),
                   .file = file,
                   .digits = {},
                   .characters = {}};
  const auto outline_for = [&](FT_ULong character) {
    const FT_UInt glyph = FT_Get_Char_Index(face, character);
    return glyph != 0 ? outline_of(face, glyph) : std::nullopt;
  };
  for (FT_ULong digit = 0; digit < 10; ++digit) {
    std::optional<GlyphOutline> outline = outline_for('0' + digit);
    if (!outline) return std::nullopt;
    digits.digits[digit] = std::move(*outline);
  }
  for (const char character : characters) {
    std::optional<GlyphOutline> outline = outline_for(static_cast<unsigned char>(character));
    if (outline) digits.characters.push_back(std::move(*outline));
  }
  return digits;
}

// How a face's ten digits, or other characters, look: coverage, each slanted and stretched evenly to fill a
// small square.
constexpr uint32_t look_side = 20;
using Look = std::vector<std::vector<uint8_t>>;

std::optional<Look> look_of(const Rasterizer& rasterizer, std::span<const GlyphOutline> outlines,
                            double slant) {
  Look look(outlines.size());
  for (size_t digit = 0; digit < outlines.size(); ++digit) {
    Polygons polygons = rasterizer.flatten(outlines[digit], 0, 0.05);
    for (std::vector<Point>& polygon : polygons) {
      for (Point& p : polygon) p.x += slant * p.y;
    }
    const Bounds box = box_around(polygons);
    const double larger = std::max(box.width(), box.height());
    if (box.height() < 0.1 || larger > 3 || stroke_width(polygons) < 1e-3) return std::nullopt;
    const double scale = look_side / larger;
    for (std::vector<Point>& polygon : polygons) {
      for (Point& p : polygon) {
        p = {(p.x - box.left - box.width() / 2) * scale + look_side / 2.0,
             (p.y - box.top - box.height() / 2) * scale + look_side / 2.0};
      }
    }
    look[digit].resize(look_side * look_side);
    rasterizer.fill(polygons, look_side, look_side, look[digit]);
  }
  return look;
}

struct Candidate {
  DigitFace face;
  Look look;
  std::string group;
  bool of_characters = false;  // that is the look of

  std::optional<Look> slanted(const Rasterizer& rasterizer, double slant) const {
    return look_of(rasterizer, of_characters ? face.drawn() : std::span<const GlyphOutline>(face.digits),
                   slant);
  }
};

// The first word without a number at its end: "Noto" of "Noto Sans", and one name for "Hand" and "Hand2".
std::string group_of(const std::string& family) {
  const std::string word = lower(family.substr(0, family.find_first_of(" -_", 1)));
  const size_t end = word.find_last_not_of("0123456789");
  return end == std::string::npos ? word : word.substr(0, end + 1);
}

// A look at half the resolution, of mean 0 and length 1, so that a product says how alike two are.
using Features = std::vector<double>;
constexpr size_t feature_side = look_side / 2;

Features standardized(Features values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double squares = 0;
  for (double& v : values) {
    v -= mean;
    squares += v * v;
  }
  for (double& v : values) v = squares > 0 ? v / std::sqrt(squares) : 0;
  return values;
}

Features features_of(const std::vector<uint8_t>& look) {
  Features features(feature_side * feature_side);
  for (size_t y = 0; y < look_side; ++y) {
    for (size_t x = 0; x < look_side; ++x) features[y / 2 * feature_side + x / 2] += look[y * look_side + x];
  }
  return standardized(std::move(features));
}

// What digits look like: any number of examples for each.
using Examples = std::vector<std::vector<Features>>;

// One example a digit and group: the mean of its faces.
std::map<std::string, Examples> examples_of(std::span<const Candidate> candidates,
                                            const std::vector<bool>& taken) {
  std::map<std::string, Examples> groups;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!taken[i]) continue;
    Examples& group = groups[candidates[i].group];
    group.resize(candidates[i].look.size());
    for (size_t d = 0; d < group.size(); ++d) {
      std::vector<Features>& mean = group[d];
      mean.resize(1, Features(feature_side * feature_side));
      const Features features = features_of(candidates[i].look[d]);
      for (size_t p = 0; p < features.size(); ++p) mean[0][p] += features[p];
    }
  }
  for (auto& [name, examples] : groups) {
    for (std::vector<Features>& mean : examples) mean[0] = standardized(std::move(mean[0]));
  }
  return groups;
}

// How many of a face's digits are more like an example of the same digit than like any other's.
int recognized(const std::vector<Look>& slanted, const Examples& examples) {
  int right = 0;
  for (size_t d = 0; d < examples.size(); ++d) {
    std::vector<double> likeness(examples.size());
    for (const Look& look : slanted) {
      const Features features = features_of(look[d]);
      for (size_t other = 0; other < examples.size(); ++other) {
        for (const Features& example : examples[other])
          likeness[other] = std::max(
              likeness[other], std::inner_product(features.begin(), features.end(), example.begin(), 0.0));
      }
    }
    right += std::ranges::max_element(likeness) - likeness.begin() == static_cast<ptrdiff_t>(d) ? 1 : 0;
  }
  return right;
}

// Symbols are stored as digits in some fonts. Faces whose digits look like the mean of all groups are taken
// first, and then those, handwriting mostly, whose digits look like what some group of these has.
std::vector<bool> look_like_each_other(const Rasterizer& rasterizer, std::span<const Candidate> candidates) {
  std::vector<bool> taken(candidates.size(), true);
  if (candidates.empty()) return taken;
  const size_t count = candidates[0].look.size();
  // Of ten.
  const auto needed_of_the_mean = static_cast<int>((count * 8 + 9) / 10),
             needed_of_any = static_cast<int>((count * 6 + 9) / 10);
  Examples mean(count);
  for (std::vector<Features>& m : mean) m.assign(1, Features(feature_side * feature_side));
  for (const auto& [name, examples] : examples_of(candidates, taken)) {
    for (size_t d = 0; d < count; ++d) {
      for (size_t p = 0; p < mean[d][0].size(); ++p) mean[d][0][p] += examples[d][0][p];
    }
  }
  for (std::vector<Features>& m : mean) m[0] = standardized(std::move(m[0]));
  for (size_t i = 0; i < candidates.size(); ++i)
    taken[i] = recognized({candidates[i].look}, mean) >= needed_of_the_mean;

  const std::map<std::string, Examples> groups = examples_of(candidates, taken);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (taken[i]) continue;
    Examples others(count);
    for (const auto& [name, examples] : groups) {
      if (name == candidates[i].group) continue;
      for (size_t d = 0; d < count; ++d) others[d].push_back(examples[d][0]);
    }
    std::vector<Look> slanted;
    for (const double slant : {-0.5, -0.25, 0.0, 0.25, 0.5}) {
      if (std::optional<Look> look = candidates[i].slanted(rasterizer, slant))
        slanted.push_back(std::move(*look));
    }
    taken[i] = recognized(slanted, others) >= needed_of_any;
  }
  return taken;
}

// Groups with a face in common, to the pixel, become one, under the name that comes first.
void join_groups(std::vector<Candidate>& candidates) {
  std::map<Look, std::string> group_with;
  for (bool changed = true; changed;) {
    changed = false;
    for (Candidate& c : candidates) {
      const auto [place, is_new] = group_with.try_emplace(c.look, c.group);
      if (is_new || place->second == c.group) continue;
      const auto [to, from] = std::minmax(place->second, c.group);
      const std::string kept = to, gone = from;
      for (Candidate& other : candidates) {
        if (other.group == gone) other.group = kept;
      }
      for (auto& [look, group] : group_with) {
        if (group == gone) group = kept;
      }
      changed = true;
    }
  }
}

std::vector<FaceGroup> groups_of(std::vector<Candidate> candidates) {
  std::map<std::string, FaceGroup> groups;
  for (Candidate& c : candidates) {
    FaceGroup& group = groups[c.group];
    group.name = c.group;
    group.faces.push_back(std::move(c.face));
  }
  std::vector<FaceGroup> sorted;
  for (auto& [name, group] : groups) sorted.push_back(std::move(group));
  return sorted;
}

bool is_named(const FaceGroup& group, const std::string& name) {
  return std::ranges::any_of(
      group.faces, [&](const DigitFace& face) { return lower(face.family).starts_with(lower(name)); });
}

// Leaves faces out that lack one of so many characters, or have symbols in their place, as symbol fonts have
// Greek letters.
void keep_complete(const Rasterizer& rasterizer, size_t characters, DigitFonts& fonts) {
  std::vector<Candidate> complete;
  std::vector<bool> in_test;
  for (std::vector<FaceGroup>* groups : {&fonts.train, &fonts.test}) {
    for (FaceGroup& group : *groups) {
      for (DigitFace& face : group.faces) {
        std::optional<Look> look;
        if (face.characters.size() == characters) look = look_of(rasterizer, face.characters, 0);
        if (look) {
          complete.push_back({std::move(face), std::move(*look), group.name, true});
          in_test.push_back(groups == &fonts.test);
        } else {
          ++fonts.skipped;
        }
      }
    }
  }
  const std::vector<bool> taken = look_like_each_other(rasterizer, complete);
  std::vector<Candidate> train, test;
  for (size_t i = 0; i < complete.size(); ++i) {
    if (taken[i]) (in_test[i] ? test : train).push_back(std::move(complete[i]));
  }
  fonts.skipped += complete.size() - train.size() - test.size();
  fonts.train = groups_of(std::move(train));
  fonts.test = groups_of(std::move(test));
  for (const std::vector<FaceGroup>* groups : {&fonts.train, &fonts.test}) {
    if (!groups->empty()) continue;
    throw Error(ErrorCode::failed, std::string("found no font for the ") +
                                       (groups == &fonts.train ? "training" : "test") +
                                       " pictures that has all of the characters, expected one at least: "
                                       "install more, or name others with --fonts");
  }
}

void split(DigitFonts& fonts, std::vector<FaceGroup> groups, std::span<const std::string> test_families) {
  for (const std::string& name : test_families) {
    if (name.empty() || std::ranges::none_of(groups, [&](const FaceGroup& g) { return is_named(g, name); }))
      throw Error(ErrorCode::usage, "--test-fonts: found " + in_quotes(name) +
                                        ", expected the beginning of a family's name that one of the " +
                                        std::to_string(groups.size()) + " groups of fonts has");
  }
  constexpr size_t every = 4;
  const bool few = groups.size() < every;
  for (size_t i = 0; i < groups.size(); ++i) {
    bool held_back = few ? i + 1 == groups.size() : i % every == every - 1;
    if (!test_families.empty())
      held_back =
          std::ranges::any_of(test_families, [&](const std::string& n) { return is_named(groups[i], n); });
    (held_back ? fonts.test : fonts.train).push_back(std::move(groups[i]));
  }
}

}  // namespace

DigitFonts find_digit_fonts(std::span<const Path> places, std::span<const std::string> test_families,
                            const std::function<void()>& looking, std::string_view characters) {
  const Rasterizer rasterizer;
  DigitFonts fonts;
  std::vector<Candidate> candidates;
  for (const Path& file : font_files(places)) {
    if (looking) looking();
    ++fonts.files;
    std::optional<MappedFile> mapped;
    try {
      mapped.emplace(file);
    } catch (const Error&) {
      continue;  // nothing to be read is no font
    }
    const std::span<const std::byte> bytes = mapped->bytes();
    constexpr FT_Long most_faces = 64;
    FT_Long faces = 1;
    for (FT_Long i = 0; i < std::min(faces, most_faces); ++i) {
      FT_Face face = nullptr;
      if (FT_New_Memory_Face(static_cast<FT_Library>(rasterizer.library()),
                             reinterpret_cast<const FT_Byte*>(bytes.data()),
                             static_cast<FT_Long>(bytes.size()), i, &face) != 0) {
        continue;
      }
      faces = face->num_faces;
      std::optional<DigitFace> digits = face_of(face, file, characters);
      FT_Done_Face(face);
      std::optional<Look> look = digits ? look_of(rasterizer, digits->digits, 0) : std::nullopt;
      if (look) {
        const std::string group = group_of(digits->family);
        candidates.push_back({std::move(*digits), std::move(*look), group});
      } else {
        ++fonts.skipped;
      }
    }
  }
  const std::vector<bool> taken = look_like_each_other(rasterizer, candidates);
  std::vector<Candidate> kept;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (taken[i]) kept.push_back(std::move(candidates[i]));
  }
  fonts.skipped += candidates.size() - kept.size();
  join_groups(kept);
  std::vector<FaceGroup> groups = groups_of(std::move(kept));
  if (groups.size() < 2) {
    throw Error(
        ErrorCode::failed,
        "found " + std::string(groups.empty() ? "no fonts" : "fonts of one family only") +
            " with digits in " + std::to_string(fonts.files) +
            " font files, expected those of two families or more: install some (on Debian: apt-get install "
            "fonts-dejavu-core fonts-liberation fonts-freefont-ttf), or name a folder with --fonts");
  }
  split(fonts, std::move(groups), test_families);
  if (fonts.train.empty())
    throw Error(ErrorCode::usage,
                "--test-fonts: found all families, expected some that are left for training");
  if (!characters.empty()) keep_complete(rasterizer, characters.size(), fonts);
  return fonts;
}

}  // namespace vitrine
