#include "hub/remote.h"

#include <fmt/format.h>

#include "checkpoint/printable.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

constexpr size_t kMaxListing = size_t{16} << 20;

class HubBase : public Remote {
 public:
  HubBase(ModelName model, std::string endpoint) : model_(std::move(model)), endpoint_(std::move(endpoint)) {}

  const std::string& endpoint() const override { return endpoint_; }

 protected:
  template <typename Request>
  Response answer_of(const std::string& what, Retry& retry, Request request) const {
    while (true) {
      Response response = request();
      if (!response.is_transient()) return response;
      if (response.unreachable || !retry.wait(what, response)) refuse(response, "");
    }
  }

  std::string subject(const std::string& file) const {
    return file.empty() ? model_.repo() : model_.repo() + "/" + file;
  }

  std::string revision() const { return model_.revision.empty() ? default_revision() : model_.revision; }

  [[noreturn]] void refuse_failing(const Response& response, const std::string& file) const {
    const std::string who = subject(file);
    if (response.unreachable) {
      throw Error(ErrorKind::io,
                  fmt::format("{}: {} cannot be reached ({}); check the network, or give the path "
                              "of a model that is on this machine",
                              who, endpoint_, response.broken));
    }
    std::string wait = "try again later";
    if (const auto seconds = response.retry_after())
      wait = fmt::format("it asks to try again in {:.0f} s", *seconds);
    throw Error(ErrorKind::io, fmt::format("{}: {} fails ({}); {}; what has been fetched is kept", who,
                                           endpoint_, reason_of(response), wait));
  }

  ModelName model_;
  std::string endpoint_;
};

class HuggingFace final : public HubBase {
 public:
  HuggingFace(ModelName model, std::string endpoint, bool has_token)
      : HubBase(std::move(model), std::move(endpoint)), has_token_(has_token) {}

  std::string default_revision() const override { return "main"; }

  Listing list(HttpClient& client, Retry retry) const override {
    const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint_, model_.repo(),
                                        percent_encoded(revision(), false));
    const Response response = answer_of(model_.repo(), retry, [&] { return client.get(url, kMaxListing); });
    if (response.status != 200) refuse(response, "");
    return parse_hugging_face_listing(response.body, fmt::format("{} at {}", model_.repo(), endpoint_));
  }

  Blob identify(HttpClient& client, Retry retry, const std::string& commit,
                const RemoteFile& file) const override {
    const std::string what = subject(file.path);
    const Response response =
        answer_of(what, retry, [&] { return client.head(file_url(commit, file.path)); });
    const bool elsewhere = response.status >= 300 && response.status < 400;
    if (response.status != 200 && !elsewhere) refuse(response, file.path);
    const std::string found = response.header("x-repo-commit");
    if (!found.empty() && found != commit) {
      throw Error(ErrorKind::malformed, fmt::format("{}: the server has it at commit {} when asked for {}",
                                                    what, printable(found), commit));
    }
    return blob_from_headers(response, file, what);
  }

  std::string file_url(const std::string& commit, const std::string& path) const override {
    return fmt::format("{}/{}/resolve/{}/{}", endpoint_, model_.repo(), percent_encoded(commit, false),
                       percent_encoded(path, true));
  }

  [[noreturn]] void refuse(const Response& response, const std::string& file) const override {
    const std::string who = subject(file);
    const std::string code = response.header("x-error-code");
    const std::string page = fmt::format("{}/{}", endpoint_, model_.repo());
    if (code == "GatedRepo" || (response.status == 403 && has_token_)) {
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format(
              "{}: access must be granted first ({}); ask for it at {}, and set HF_TOKEN to a token of "
              "that account",
              who, response.status, page));
    }
    if (response.status == 401 || response.status == 403) {
      throw Error(
          ErrorKind::invalid_argument,
          has_token_
              ? fmt::format("{}: {} does not accept the token ({}); check the name, and HF_TOKEN or the "
                            "token file",
                            who, endpoint_, response.status)
              : fmt::format("{}: {} asks for a login ({}): there is no such model, or it is private; "
                            "check the name, or set HF_TOKEN",
                            who, endpoint_, response.status));
    }
    if (response.status == 404) {
      if (code == "RevisionNotFound") {
        throw Error(ErrorKind::not_found, fmt::format("{}: there is no revision {} at {}; see {}/tree/main",
                                                      who, printable(revision()), endpoint_, page));
      }
      throw Error(ErrorKind::not_found,
                  fmt::format("{}: there is nothing at {} under this name{}; check its spelling", who,
                              endpoint_, model_.revision.empty() ? "" : " and revision"));
    }
    refuse_failing(response, file);
  }

 private:
  bool has_token_;
};

class ModelScope final : public HubBase {
 public:
  using HubBase::HubBase;

  std::string default_revision() const override { return "master"; }

  Listing list(HttpClient& client, Retry retry) const override {
    const std::string url = fmt::format("{}/api/v1/models/{}/repo/files?Revision={}&Recursive=true",
                                        endpoint_, model_.repo(), percent_encoded(revision(), false));
    const Response response = answer_of(model_.repo(), retry, [&] { return client.get(url, kMaxListing); });
    if (response.status != 200) refuse(response, "");
    return parse_modelscope_listing(response.body, fmt::format("{} at {}", model_.repo(), endpoint_));
  }

  Blob identify(HttpClient&, Retry, const std::string&, const RemoteFile& file) const override {
    if (file.sha256.empty() || !file.size) {
      throw Error(ErrorKind::malformed,
                  fmt::format("{}: {} says no size or no SHA-256 of it", subject(file.path), endpoint_));
    }
    return {file.sha256, *file.size, file.sha256, ""};
  }

  std::string file_url(const std::string&, const std::string& path) const override {
    return fmt::format("{}/models/{}/resolve/{}/{}", endpoint_, model_.repo(),
                       percent_encoded(revision(), false), percent_encoded(path, true));
  }

  [[noreturn]] void refuse(const Response& response, const std::string& file) const override {
    if (response.status == 401 || response.status == 403 || response.status == 404) {
      throw Error(ErrorKind::not_found,
                  fmt::format("{}: there is nothing public at {} under this name{} ({}); check its spelling",
                              subject(file), endpoint_, model_.revision.empty() ? "" : " and revision",
                              response.status));
    }
    refuse_failing(response, file);
  }
};

}  // namespace

std::unique_ptr<Remote> hugging_face(const Environment& environment, const ModelName& model) {
  return std::make_unique<HuggingFace>(model, environment.endpoint, environment.token().has_value());
}

std::unique_ptr<Remote> modelscope(const Environment& environment, const ModelName& model) {
  return std::make_unique<ModelScope>(model, environment.modelscope_endpoint);
}

}  // namespace qwench::hub
