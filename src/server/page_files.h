#pragma once

#include <span>
#include <string_view>

#include "server/http_message.h"

namespace qwench::server {

/// A file of the page that the server opens at "/": its own from src/server/page, and libraries from Debian's
/// packages where the build found them. They lie in the program, and are the same for everybody.
struct PageFile {
  std::string_view path;  ///< "/" or "/page/chat.js"
  std::string_view type;  ///< of its content
  std::string_view content;
};

std::span<const PageFile> page_files();
/// Null where there is none.
const PageFile* find_page_file(std::string_view path);

/// A file with the headers that keep what it loads and runs to this server alone, and an entity tag, to which
/// `request` may refer (304).
HttpResponse page_response(const PageFile& file, const HttpRequest& request);

}  // namespace qwench::server
