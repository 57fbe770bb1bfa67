#version 450
// Triangles of the user interface, in pixels of the window.
layout(location = 0) in vec2 position;
layout(location = 1) in vec2 uv;
layout(location = 2) in vec4 color;

layout(push_constant) uniform Window {
  vec2 scale;
  vec2 translate;
};

layout(location = 0) out vec4 color_out;
layout(location = 1) out vec2 uv_out;

void main() {
  color_out = color;
  uv_out = uv;
  gl_Position = vec4(position * scale + translate, 0, 1);
}
