#include "backend/vulkan/vulkan_pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "backend/vulkan/embedded_shaders.h"
#include "core/user_folders.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr uint32_t kSetsInPool = 256;
constexpr size_t kLargestCache = size_t{64} << 20;

// One file for each driver's version and device: the UUID is that of compatible caches.
std::filesystem::path cache_file_of(const PhysicalDevice& physical) {
  std::string uuid;
  for (const uint8_t byte : physical.cache_uuid) uuid += fmt::format("{:02x}", byte);
  return cache_folder() / "vulkan" /
         fmt::format("{:08x}-{:08x}-{:08x}-{}.bin", physical.properties.vendorID,
                     physical.properties.deviceID, physical.properties.driverVersion, uuid);
}

std::vector<char> read_cache(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || size > kLargestCache) return {};
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

VulkanPipelines::VulkanPipelines(std::shared_ptr<VulkanDevice> device) : device_(std::move(device)) {
  make_layouts();
  open_cache();
}

VulkanPipelines::~VulkanPipelines() {
  const VulkanApi& api = device_->api();
  save();
  for (const auto& [key, pipeline] : pipelines_) api.destroy_pipeline(device_->handle(), pipeline, nullptr);
  for (const auto& [name, module] : modules_) api.destroy_shader_module(device_->handle(), module, nullptr);
  for (VkDescriptorPool pool : pools_) api.destroy_descriptor_pool(device_->handle(), pool, nullptr);
  if (cache_ != VK_NULL_HANDLE) api.destroy_pipeline_cache(device_->handle(), cache_, nullptr);
  if (layout_ != VK_NULL_HANDLE) api.destroy_pipeline_layout(device_->handle(), layout_, nullptr);
  if (set_layout_ != VK_NULL_HANDLE)
    api.destroy_descriptor_set_layout(device_->handle(), set_layout_, nullptr);
}

void VulkanPipelines::make_layouts() {
  const VulkanApi& api = device_->api();
  std::array<VkDescriptorSetLayoutBinding, kShaderBindings> bindings{};
  for (uint32_t i = 0; i < kShaderBindings; ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = kShaderBindings;
  set.pBindings = bindings.data();
  device_->check(api.create_descriptor_set_layout(device_->handle(), &set, nullptr, &set_layout_),
                 "laying out shaders' buffers");
  const VkPushConstantRange arguments{VK_SHADER_STAGE_COMPUTE_BIT, 0, kArgumentBytes};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &arguments;
  device_->check(api.create_pipeline_layout(device_->handle(), &layout, nullptr, &layout_),
                 "laying out shaders' buffers");
}

void VulkanPipelines::open_cache() {
  cache_file_ = cache_file_of(device_->physical());
  const std::vector<char> data = read_cache(cache_file_);
  VkPipelineCacheCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  create.initialDataSize = data.size();
  create.pInitialData = data.data();
  // The driver checks the header; what it does not take, it leaves.
  if (device_->api().create_pipeline_cache(device_->handle(), &create, nullptr, &cache_) == VK_SUCCESS)
    return;
  create.initialDataSize = 0;
  device_->check(device_->api().create_pipeline_cache(device_->handle(), &create, nullptr, &cache_),
                 "making a pipeline cache");
}

void VulkanPipelines::save() noexcept {
  if (!changed_ || device_->lost()) return;
  changed_ = false;
  try {
    size_t size = 0;
    const VulkanApi& api = device_->api();
    if (api.get_pipeline_cache_data(device_->handle(), cache_, &size, nullptr) != VK_SUCCESS) return;
    std::vector<char> data(size);
    if (api.get_pipeline_cache_data(device_->handle(), cache_, &size, data.data()) != VK_SUCCESS) return;
    std::filesystem::create_directories(cache_file_.parent_path());
    // Whole or not at all: other processes read it.
    const std::filesystem::path part = fmt::format("{}.{}", cache_file_.string(), fmt::ptr(this));
    std::ofstream file(part, std::ios::binary);
    file.write(data.data(), static_cast<std::streamsize>(size));
    file.close();
    if (file) {
      std::filesystem::rename(part, cache_file_);
    } else {
      std::filesystem::remove(part);
    }
  } catch (const std::exception&) {
    // Without the cache the next start is slower, and that is all.
  }
}

VkShaderModule VulkanPipelines::module_of(std::string_view shader) {
  if (const auto found = modules_.find(shader); found != modules_.end()) return found->second;
  const auto all = embedded_shaders();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const EmbeddedShader& s) { return s.name == shader; });
  if (it == all.end()) throw Error(ErrorKind::unsupported, fmt::format("there is no shader {}", shader));
  VkShaderModuleCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  create.codeSize = it->words.size_bytes();
  create.pCode = it->words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  device_->check(device_->api().create_shader_module(device_->handle(), &create, nullptr, &module),
                 fmt::format("loading the shader {}", shader));
  modules_.emplace(shader, module);
  return module;
}

VkPipeline VulkanPipelines::pipeline(std::string_view shader, Constants constants) {
  const std::pair key{std::string(shader), constants};
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;
  const std::array<VkSpecializationMapEntry, 2> entries{{{0, 0, 4}, {1, 4, 4}}};
  const VkSpecializationInfo specialization{2, entries.data(), sizeof constants, constants.data()};
  VkComputePipelineCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module_of(shader);
  create.stage.pName = "main";
  create.stage.pSpecializationInfo = &specialization;
  create.layout = layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  device_->check(
      device_->api().create_compute_pipelines(device_->handle(), cache_, 1, &create, nullptr, &pipeline),
      fmt::format("compiling the shader {}", shader));
  changed_ = true;
  pipelines_.emplace(key, pipeline);
  return pipeline;
}

VkDescriptorSet VulkanPipelines::allocate() {
  const VulkanApi& api = device_->api();
  if (left_in_pool_ == 0) {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSetsInPool * kShaderBindings};
    VkDescriptorPoolCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    create.maxSets = kSetsInPool;
    create.poolSizeCount = 1;
    create.pPoolSizes = &size;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    device_->check(api.create_descriptor_pool(device_->handle(), &create, nullptr, &pool),
                   "making descriptors");
    pools_.push_back(pool);
    left_in_pool_ = kSetsInPool;
  }
  VkDescriptorSetAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorPool = pools_.back();
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &set_layout_;
  VkDescriptorSet set = VK_NULL_HANDLE;
  device_->check(api.allocate_descriptor_sets(device_->handle(), &allocate, &set), "making descriptors");
  --left_in_pool_;
  return set;
}

VkDescriptorSet VulkanPipelines::descriptors(std::span<const BufferBinding> bindings) {
  std::vector<uint64_t> key;
  for (const BufferBinding& binding : bindings)
    key.insert(key.end(), {binding.slot, binding.buffer->id(), binding.offset, binding.size});
  if (const auto found = sets_.find(key); found != sets_.end()) return found->second;
  VkDescriptorSet set = allocate();
  std::array<VkDescriptorBufferInfo, kShaderBindings> infos{};
  std::array<VkWriteDescriptorSet, kShaderBindings> writes{};
  for (size_t i = 0; i < bindings.size(); ++i) {
    const BufferBinding& binding = bindings[i];
    const uint64_t range = binding.size > 0 ? binding.size : binding.buffer->size() - binding.offset;
    infos[i] = {binding.buffer->handle(), binding.offset, range};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = binding.slot;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &infos[i];
  }
  device_->api().update_descriptor_sets(device_->handle(), static_cast<uint32_t>(bindings.size()),
                                        writes.data(), 0, nullptr);
  sets_.emplace(std::move(key), set);
  return set;
}

void VulkanPipelines::forget_descriptors() {
  for (VkDescriptorPool pool : pools_)
    device_->api().destroy_descriptor_pool(device_->handle(), pool, nullptr);
  pools_.clear();
  sets_.clear();
  left_in_pool_ = 0;
}

}  // namespace qwench
