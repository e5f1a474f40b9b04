#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/tracked_text.h"

namespace qwench::jinja {

struct UrlizeOptions {
  std::optional<int64_t> trim_limit;  ///< code points of a URL that are shown
  std::string rel, target;            ///< attributes of the links, when not empty
  std::vector<std::string> extra_schemes;
};

/// Makes links of the URLs and mail addresses in (already escaped) text, as Jinja's urlize filter does.
TrackedText urlize(const TrackedText& text, const UrlizeOptions& options);

/// Is it a prefix like "tel:" or "ftp://"?
bool is_uri_scheme(std::string_view text);

}  // namespace qwench::jinja
