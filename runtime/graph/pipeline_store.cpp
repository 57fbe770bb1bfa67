#include "runtime/graph/pipeline_store.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace vitrine {

PipelineStore::PipelineStore(Device& device, bool capture_statistics)
    : device_(device), capture_statistics_(capture_statistics), cache_(device) {}

PipelineStore::~PipelineStore() = default;

std::vector<std::shared_ptr<const Pipeline>> PipelineStore::get(std::span<const Dispatch* const> dispatches,
                                                                const GoOn& go_on) {
  std::vector<Key> keys;
  for (const Dispatch* dispatch : dispatches)
    keys.push_back({dispatch->shader, constants_by_id(*dispatch), dispatch->subgroup_size});
  std::map<Key, const Dispatch*> missing;
  {
    const std::lock_guard lock(lock_);
    for (size_t i = 0; i < dispatches.size(); ++i) {
      if (!pipelines_.contains(keys[i])) missing.try_emplace(keys[i], dispatches[i]);
    }
  }

  std::vector<std::pair<const Key*, const Dispatch*>> work;
  for (const auto& [key, dispatch] : missing) work.emplace_back(&key, dispatch);
  std::vector<std::shared_ptr<const Pipeline>> made(work.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex failure_lock;
  std::exception_ptr failure;
  const auto compile = [&] {
    for (size_t i = next++; i < work.size() && !stopped; i = next++) {
      try {
        if (go_on && !go_on(static_cast<double>(i) / static_cast<double>(work.size()))) {
          stopped = true;
          return;
        }
        const Dispatch& dispatch = *work[i].second;
        made[i] = std::make_shared<const Pipeline>(
            device_, PipelineRequest{dispatch.shader, work[i].first->constants, dispatch.subgroup_size,
                                     to_u32(dispatch.operands.size()), to_u32(dispatch.params.size()),
                                     cache_.handle(), capture_statistics_});
      } catch (...) {
        const std::lock_guard lock(failure_lock);
        failure = std::current_exception();
        stopped = true;
        return;
      }
    }
  };
  const size_t threads = std::min<size_t>(work.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> pool;
  for (size_t i = 1; i < threads; ++i) pool.emplace_back(compile);
  compile();
  pool.clear();  // joins

  // Where another thread was faster with one, that one stays.
  const std::lock_guard lock(lock_);
  for (size_t i = 0; i < work.size(); ++i) {
    if (made[i]) pipelines_.emplace(*work[i].first, std::move(made[i]));
  }
  if (failure) std::rethrow_exception(failure);
  if (!work.empty()) cache_.save();
  if (stopped) throw Interrupted();

  std::vector<std::shared_ptr<const Pipeline>> found;
  for (const Key& key : keys) found.push_back(pipelines_.at(key));
  return found;
}

}  // namespace vitrine
