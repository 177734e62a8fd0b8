// Downloads files of one repository: several at once, over a limited number of connections. Main thread.
#pragma once

#include <vector>

#include "app/hub/api/hub_client.h"
#include "app/hub/pull/file_download.h"
#include "app/hub/pull/pull_observer.h"

namespace vllm::app {

// Downloads `files` into the cache. On an error or a signal, keeps what has arrived, so that another call continues.
// Throws ModelError, RequestError, ResourceError or Interrupted.
void DownloadFiles(const std::vector<HubFile>& files, const DownloadTarget& target, HubClient& hub,
                   PullObserver& observer);

}  // namespace vllm::app
