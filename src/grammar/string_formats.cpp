#include "grammar/string_formats.h"

#include <fmt/format.h>

#include <map>
#include <string>

namespace qwench {
namespace {

// The year 0000 is none in most calendars of programming languages; every fourth year has a 29th of February,
// of the hundreds every fourth.
constexpr const char* kDate =
    "((([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-"
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])))"
    "|"
    "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)";
constexpr const char* kTime =
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
constexpr const char* kByte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
constexpr const char* kLabel = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?";
constexpr const char* kBase64 =
    "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";
constexpr const char* kGroup = "[0-9a-fA-F]{1,4}";

std::string duration() {
  const std::string time = "T([0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S)";
  const std::string days = "[0-9]{1,9}D";
  const std::string months = "[0-9]{1,9}M(" + days + ")?";
  const std::string years = "[0-9]{1,9}Y(" + months + ")?";
  return "P((" + days + "|" + months + "|" + years + ")(" + time + ")?|" + time + "|[0-9]{1,9}W)";
}

std::string uuid(const std::string& version) {
  return "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-" + version + "[0-9a-fA-F]{3}-" +
         (version.size() == 1 ? "[89ab]" : "[0-9a-fA-F]") + "[0-9a-fA-F]{3}-[0-9a-fA-F]{12}";
}

std::string ipv6() {
  const std::string group = kGroup;
  std::string pattern = "(" + group + ":){7}" + group;
  for (int before = 0; before <= 7; ++before) {
    const std::string head =
        before == 0 ? "" : "(" + group + ":){" + std::to_string(before - 1) + "}" + group;
    const int after = 7 - before;
    const std::string tail =
        after == 0 ? "" : "(" + group + "(:" + group + "){0," + std::to_string(after - 1) + "})?";
    pattern += "|" + head + "::" + tail;
  }
  return pattern;
}

const std::map<std::string, std::string, std::less<>>& patterns() {
  static const std::map<std::string, std::string, std::less<>> known = [] {
    const std::string host = std::string(kLabel) + "(\\." + kLabel + "){0,3}";
    const std::string byte = kByte;
    return std::map<std::string, std::string, std::less<>>{
        {"date", kDate},
        {"time", kTime},
        {"date-time", std::string(kDate) + "T" + kTime},
        {"duration", duration()},
        {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
        {"guid", uuid("[0-9a-fA-F]")},
        {"uuid1", uuid("1")},
        {"uuid3", uuid("3")},
        {"uuid4", uuid("4")},
        {"uuid5", uuid("5")},
        {"uuid6", uuid("6")},
        {"uuid7", uuid("7")},
        {"uuid8", uuid("8")},
        {"ipvanyaddress", byte + "(\\." + byte + "){3}|" + ipv6()},
        {"ipv4network", byte + "(\\." + byte + "){3}/32"},
        {"ipv4interface", byte + "(\\." + byte + "){3}(/(3[0-2]|[12]?[0-9]))?"},
        {"cidrv4", byte + "(\\." + byte + "){3}/(3[0-2]|[12]?[0-9])"},
        {"base64", std::string(kBase64)},
        {"base64url", "([A-Za-z0-9_-]{4})*([A-Za-z0-9_-][AQgw]==|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=)?"},
        {"cuid", "c[0-9a-z]{24}"},
        {"cuid2", "[a-z][0-9a-z]{23}"},
        {"ulid", "[0-7][0-9A-HJKMNP-TV-Z]{25}"},
        {"nanoid", "[a-zA-Z0-9_-]{21}"},
        {"e164", "\\+[1-9][0-9]{6,14}"},
        {"color", "#[0-9a-fA-F]{6}"},
        {"regex", "[a-zA-Z0-9 _-]*"},
        {"relative-json-pointer", "(0|[1-9][0-9]{0,5})(#|(/([a-zA-Z0-9._-]|~[01])*)*)"},
        {"email", "[a-zA-Z0-9_+-]{1,32}(\\.[a-zA-Z0-9_+-]{1,16}){0,2}@" + std::string(kLabel) + "(\\." +
                      kLabel + "){1,3}"},
        {"hostname", host},
        {"ipv4", byte + "(\\." + byte + "){3}"},
        {"ipv6", ipv6()},
        {"idn-email", "[a-zA-Z0-9_+-]{1,32}@" + std::string(kLabel) + "(\\." + kLabel + "){1,3}"},
        {"idn-hostname", host},
        {"byte", std::string(kBase64)},
        {"json-pointer", "(/([a-zA-Z0-9._-]|~[01])*)*"},
        {"uri-reference", "(/[a-zA-Z0-9._~-]+)+(\\?[a-zA-Z0-9._~/?=&-]*)?(#[a-zA-Z0-9._~/?=&-]*)?"},
        {"iri", "[a-z][a-z0-9+.-]{0,15}://" + host + "(/[a-zA-Z0-9._~-]*)*"},
        {"iri-reference", "(/[a-zA-Z0-9._~-]+)+"},
        {"uri", "[a-z][a-z0-9+.-]{0,15}://" + host + "(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~-]*)*" +
                    "(\\?[a-zA-Z0-9._~/?=&-]*)?(#[a-zA-Z0-9._~/?=&-]*)?"},
    };
  }();
  return known;
}

}  // namespace

const char* format_pattern(std::string_view format) {
  const auto found = patterns().find(format);
  return found == patterns().end() ? nullptr : found->second.c_str();
}

bool says_nothing_of_strings(std::string_view format) {
  return format == "password" || format == "binary" || format == "int32" || format == "int64" ||
         format == "float" || format == "double" || format == "decimal" || format == "path" ||
         format == "file-path" || format == "directory-path" || format == "textarea" || format == "markdown";
}

std::string_view known_formats() {
  return "date, time, date-time, duration, uuid, email, idn-email, hostname, idn-hostname, ipv4, ipv6, uri, "
         "uri-reference, iri, iri-reference, json-pointer, relative-json-pointer, regex, byte, base64, "
         "base64url, "
         "and of libraries guid, uuid1 to uuid8, cuid, cuid2, ulid, nanoid, e164, color, cidrv4, "
         "ipv4network, "
         "ipv4interface and ipvanyaddress";
}

std::string unknown_format(std::string_view format) {
  return fmt::format("format: \"{}\" is not supported; there are {}", format, known_formats());
}

}  // namespace qwench
