# SwiftShader, a software driver by other people: subgroups of 4, workgroups of 256, no 8-, 16- or 64-bit types.
manifest=$("$here/get_swiftshader") || lacks "it could not be had (the sentence above says why)"
export VK_DRIVER_FILES=$manifest
