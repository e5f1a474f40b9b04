#include "text/jinja/runtime.h"

#include <fmt/format.h>

namespace qwench::jinja {

void Runtime::fail_steps() const {
  fail(TemplateErrorKind::limit, fmt::format("the template needs more than {} steps", limits_.max_steps));
}

void Runtime::fail_size() const {
  fail(TemplateErrorKind::limit,
       fmt::format("the template makes a text of more than {} bytes", limits_.max_output));
}

void Runtime::fail_nesting() {
  --nesting_;  // no destructor follows a constructor that throws
  fail(TemplateErrorKind::limit, "the template nests too deep");
}

}  // namespace qwench::jinja
