// A model that reads texts: labels that are scored against the picture, and words by which the folder is
// sorted and its patches are compared. State of the UI thread; what takes time is done by the worker.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/desktop/engine/picture_library.h"
#include "apps/desktop/engine/worker.h"
#include "apps/desktop/looking.h"

namespace vitrine::desktop {

class Words {
 public:
  Words(Looking& looking, PictureLibrary& library, Worker& worker);
  ~Words();
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  // ---- actions: each takes what stands in a box, as it is typed ----
  void set_labels(std::string text);   // with commas between
  void set_pattern(std::string text);  // with {} where a label goes; empty: the label is the text
  void look_for(std::string text);     // empty: the folder in its own order
  // What is left is read when something is typed or opened, no earlier.
  void cancel();
  // What stands in the boxes, for those of another device; typed anew it is asked for again.
  struct Typed {
    std::string labels, pattern, words;
  };
  Typed typed() const { return {labels_.typed, pattern_, query_.typed}; }
  void type(Typed typed);

  // ---- once a frame, behind Looking's: asks for what is wanted and isn't there ----
  void update();
  bool busy() const;

  // ---- what there is ----
  // Whether the model reads texts at all.
  bool readable() const;
  const std::string& labels() const { return labels_.typed; }
  const std::string& pattern() const { return pattern_; }
  const std::string& words() const { return query_.typed; }
  // Why texts can't be read, or what is wrong with what was typed; empty: nothing.
  const std::string& trouble() const { return trouble_; }
  // The picture's labels, the likeliest first; nothing as long as there are none.
  const std::vector<TopAnswer>& scores() const { return scores_; }
  // How like a picture of the list is to the words; nothing where it isn't known.
  std::optional<float> similarity(size_t index) const;
  // Of the folder, once there are words.
  size_t read() const { return read_; }

 private:
  // A text that was typed, and its vectors as soon as they are there.
  struct Asked {
    std::string typed;
    std::string read;  // that these vectors are of, or that could not be read
    std::shared_ptr<const std::vector<float>> vectors;
  };
  struct Compared {
    std::vector<float> features;
    std::optional<float> similarity;
  };
  void forget();
  // What a job has found goes back by `post`, as long as its model is the one that is looked with.
  using Post = std::function<void(std::function<void(Words&)>)>;
  void start(std::string what, std::function<void(WordReader&, Progress&, const Post&)> work,
             std::function<void(Words&)> failed);
  void read_labels();
  void read_query();
  void read_pictures();
  void take_picture(WordReader::Found& found);
  void score();
  void compare_all();
  std::optional<float> similarity_of(const std::filesystem::path& path) const;
  void sort();
  std::string effective_pattern() const;

  Looking& looking_;
  PictureLibrary& library_;
  Worker& worker_;
  std::weak_ptr<ModelSession> session_;  // whose all of the following is
  std::shared_ptr<const TextModel> text_;
  Asked labels_, query_;
  std::string pattern_, pattern_read_, trouble_;
  std::vector<std::string> labels_read_;
  std::vector<TopAnswer> scores_;
  uint64_t scored_look_ = 0;
  // By the path as it is written: paths compare part by part, and there may be a hundred thousand.
  std::unordered_map<std::filesystem::path::string_type, Compared> pictures_;
  enum class Reading : uint8_t { nothing, begun, done };
  Reading reading_ = Reading::nothing;
  uint64_t list_ = 0;  // the library's, that is read
  size_t read_ = 0;    // pictures of it
  bool has_model_ = false, exif_ = false, sorted_ = true, cancelled_ = false;
  double next_sort_ = 0;  // seconds
  // Held by the job that is queued or runs: expired, there is none.
  std::weak_ptr<const bool> job_;
  std::shared_ptr<Words*> self_;  // null inside once this is gone
};

}  // namespace vitrine::desktop
