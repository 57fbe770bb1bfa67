#include "apps/desktop/gpu/ui_renderer.h"

#include <imgui.h>
#include <volk.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "runtime/util/error.h"
#include "runtime/vk/result.h"
#include "ui_frag.h"
#include "ui_vert.h"

namespace vitrine::desktop {
namespace {

struct Push {
  float scale[2], translate[2];
};

DeviceHandle<VkShaderModule> make_module(Device& device, std::span<const uint32_t> code) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = code.size_bytes();
  info.pCode = code.data();
  VkShaderModule made = VK_NULL_HANDLE;
  check(device.vk().vkCreateShaderModule(device.handle(), &info, nullptr, &made), "vkCreateShaderModule");
  return {device.handle(), made, device.vk().vkDestroyShaderModule};
}

// A buffer of at least so many bytes; grows by halves so that a busy frame doesn't make one each time.
void require(Device& device, std::unique_ptr<Buffer>& buffer, uint64_t bytes, const char* name) {
  if (buffer && buffer->bytes() >= bytes) return;
  buffer = std::make_unique<Buffer>(device, BufferKind::geometry,
                                    std::max<uint64_t>(bytes + bytes / 2, 65536), name);
}

}  // namespace

UiRenderer::UiRenderer(Device& device, TextureStore& textures, VkFormat format)
    : device_(device), textures_(textures) {
  make_pipeline(format);
}

void UiRenderer::make_pipeline(VkFormat format) {
  const VkPushConstantRange range{VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(Push)};
  const VkDescriptorSetLayout sets = textures_.layout();
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &sets;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  VkPipelineLayout made_layout = VK_NULL_HANDLE;
  check(device_.vk().vkCreatePipelineLayout(device_.handle(), &layout, nullptr, &made_layout),
        "vkCreatePipelineLayout");
  layout_ = {device_.handle(), made_layout, device_.vk().vkDestroyPipelineLayout};

  const DeviceHandle<VkShaderModule> vertex = make_module(device_, spirv_ui_vert);
  const DeviceHandle<VkShaderModule> fragment = make_module(device_, spirv_ui_frag);
  std::array<VkPipelineShaderStageCreateInfo, 2> stages{};
  for (VkPipelineShaderStageCreateInfo& stage : stages) {
    stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    stage.pName = "main";
  }
  stages[0].stage = VK_SHADER_STAGE_VERTEX_BIT;
  stages[0].module = vertex.get();
  stages[1].stage = VK_SHADER_STAGE_FRAGMENT_BIT;
  stages[1].module = fragment.get();

  const VkVertexInputBindingDescription binding{0, sizeof(ImDrawVert), VK_VERTEX_INPUT_RATE_VERTEX};
  const std::array<VkVertexInputAttributeDescription, 3> attributes{{
      {0, 0, VK_FORMAT_R32G32_SFLOAT, offsetof(ImDrawVert, pos)},
      {1, 0, VK_FORMAT_R32G32_SFLOAT, offsetof(ImDrawVert, uv)},
      {2, 0, VK_FORMAT_R8G8B8A8_UNORM, offsetof(ImDrawVert, col)},
  }};
  VkPipelineVertexInputStateCreateInfo input{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  input.vertexBindingDescriptionCount = 1;
  input.pVertexBindingDescriptions = &binding;
  input.vertexAttributeDescriptionCount = static_cast<uint32_t>(attributes.size());
  input.pVertexAttributeDescriptions = attributes.data();
  VkPipelineInputAssemblyStateCreateInfo assembly{
      VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
  assembly.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
  VkPipelineViewportStateCreateInfo viewport{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
  viewport.viewportCount = viewport.scissorCount = 1;
  VkPipelineRasterizationStateCreateInfo raster{VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
  raster.lineWidth = 1;
  VkPipelineMultisampleStateCreateInfo samples{VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
  samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
  VkPipelineColorBlendAttachmentState blend{};
  blend.blendEnable = VK_TRUE;
  blend.srcColorBlendFactor = VK_BLEND_FACTOR_SRC_ALPHA;
  blend.dstColorBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA;
  blend.srcAlphaBlendFactor = VK_BLEND_FACTOR_ONE;
  blend.dstAlphaBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA;
  blend.colorWriteMask = VK_COLOR_COMPONENT_R_BIT | VK_COLOR_COMPONENT_G_BIT | VK_COLOR_COMPONENT_B_BIT |
                         VK_COLOR_COMPONENT_A_BIT;
  VkPipelineColorBlendStateCreateInfo blending{VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
  blending.attachmentCount = 1;
  blending.pAttachments = &blend;
  const std::array<VkDynamicState, 2> varying{VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
  VkPipelineDynamicStateCreateInfo dynamic{VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO};
  dynamic.dynamicStateCount = static_cast<uint32_t>(varying.size());
  dynamic.pDynamicStates = varying.data();
  VkPipelineRenderingCreateInfo rendering{VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO};
  rendering.colorAttachmentCount = 1;
  rendering.pColorAttachmentFormats = &format;

  VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, &rendering};
  info.stageCount = static_cast<uint32_t>(stages.size());
  info.pStages = stages.data();
  info.pVertexInputState = &input;
  info.pInputAssemblyState = &assembly;
  info.pViewportState = &viewport;
  info.pRasterizationState = &raster;
  info.pMultisampleState = &samples;
  info.pColorBlendState = &blending;
  info.pDynamicState = &dynamic;
  info.layout = layout_.get();
  VkPipeline made = VK_NULL_HANDLE;
  check(device_.vk().vkCreateGraphicsPipelines(device_.handle(), VK_NULL_HANDLE, 1, &info, nullptr, &made),
        "vkCreateGraphicsPipelines");
  pipeline_ = {device_.handle(), made, device_.vk().vkDestroyPipeline};
}

void UiRenderer::upload_fonts() {
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.GetTexDataAsRGBA32(&pixels, &width, &height);
  const TexturePointer made = textures_.make(static_cast<uint32_t>(width), static_cast<uint32_t>(height));
  textures_.write(made, {pixels, size_t{4} * static_cast<size_t>(width) * static_cast<size_t>(height)});
  fonts_ = made;
  atlas.SetTexID(fonts_->id());
}

bool UiRenderer::has_fonts() const {
  if (fonts_ && fonts_->failed()) {
    throw Error(ErrorCode::failed, "the picture of the letters could not be made");
  }
  return fonts_ && fonts_->made();
}

void UiRenderer::draw(VkCommandBuffer commands, const ImDrawData& data, VkExtent2D extent, uint32_t slot) {
  Geometry& geometry = geometry_[slot];
  if (data.TotalVtxCount == 0) return;
  require(device_, geometry.vertices, static_cast<uint64_t>(data.TotalVtxCount) * sizeof(ImDrawVert),
          "interface vertices");
  require(device_, geometry.indices, static_cast<uint64_t>(data.TotalIdxCount) * sizeof(ImDrawIdx),
          "interface indices");
  std::byte* vertices = geometry.vertices->mapped().data();
  std::byte* indices = geometry.indices->mapped().data();
  for (const ImDrawList* list : data.CmdLists) {
    std::memcpy(vertices, list->VtxBuffer.Data, static_cast<size_t>(list->VtxBuffer.size_in_bytes()));
    std::memcpy(indices, list->IdxBuffer.Data, static_cast<size_t>(list->IdxBuffer.size_in_bytes()));
    vertices += list->VtxBuffer.size_in_bytes();
    indices += list->IdxBuffer.size_in_bytes();
  }
  geometry.vertices->flush();
  geometry.indices->flush();

  const VolkDeviceTable& vk = device_.vk();
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_.get());
  const VkBuffer vertex_buffer = geometry.vertices->handle();
  const VkDeviceSize start = 0;
  vk.vkCmdBindVertexBuffers(commands, 0, 1, &vertex_buffer, &start);
  vk.vkCmdBindIndexBuffer(commands, geometry.indices->handle(), 0,
                          sizeof(ImDrawIdx) == 2 ? VK_INDEX_TYPE_UINT16 : VK_INDEX_TYPE_UINT32);
  const VkViewport viewport{0, 0, static_cast<float>(extent.width), static_cast<float>(extent.height), 0, 1};
  vk.vkCmdSetViewport(commands, 0, 1, &viewport);
  const Push push{
      {2 / data.DisplaySize.x, 2 / data.DisplaySize.y},
      {-1 - data.DisplayPos.x * 2 / data.DisplaySize.x, -1 - data.DisplayPos.y * 2 / data.DisplaySize.y}};
  vk.vkCmdPushConstants(commands, layout_.get(), VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(push), &push);

  int first_vertex = 0;
  uint32_t first_index = 0;
  VkDescriptorSet bound = VK_NULL_HANDLE;
  const ImVec2 scale = data.FramebufferScale;
  for (const ImDrawList* list : data.CmdLists) {
    for (const ImDrawCmd& command : list->CmdBuffer) {
      if (command.UserCallback) {
        if (command.UserCallback != ImDrawCallback_ResetRenderState) command.UserCallback(list, &command);
        continue;
      }
      const float left = std::max((command.ClipRect.x - data.DisplayPos.x) * scale.x, 0.0f);
      const float top = std::max((command.ClipRect.y - data.DisplayPos.y) * scale.y, 0.0f);
      const float right =
          std::min((command.ClipRect.z - data.DisplayPos.x) * scale.x, static_cast<float>(extent.width));
      const float bottom =
          std::min((command.ClipRect.w - data.DisplayPos.y) * scale.y, static_cast<float>(extent.height));
      if (right <= left || bottom <= top) continue;
      const VkRect2D scissor{{static_cast<int32_t>(left), static_cast<int32_t>(top)},
                             {static_cast<uint32_t>(right - left), static_cast<uint32_t>(bottom - top)}};
      vk.vkCmdSetScissor(commands, 0, 1, &scissor);
      const VkDescriptorSet set = static_cast<const Texture*>(command.GetTexID())->drawable();
      if (set == VK_NULL_HANDLE) continue;
      if (set != bound) {
        vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout_.get(), 0, 1, &set, 0,
                                   nullptr);
        bound = set;
      }
      vk.vkCmdDrawIndexed(commands, command.ElemCount, 1, first_index + command.IdxOffset,
                          first_vertex + static_cast<int32_t>(command.VtxOffset), 0);
    }
    first_vertex += list->VtxBuffer.Size;
    first_index += static_cast<uint32_t>(list->IdxBuffer.Size);
  }
}

}  // namespace vitrine::desktop
