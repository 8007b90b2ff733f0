//! Texture and surface objects.

use crate::abi::arguments::{In, Out};
use crate::abi::texture::{
    RESOURCE_DESC_BYTES_13, RESOURCE_VIEW_DESC_BYTES_13, ResourceDesc, ResourceViewDesc, TextureDesc, TextureDescV2,
};
use crate::runtime_api;
use crate::session::arrays::texture;
use balar_host::CudaError;

/// Writes a structure of an older version, then zeros up to the size that the newer one has.
fn set_with_zeros<T: Copy>(place: Out<T>, value: T, bytes: usize) -> Result<(), CudaError> {
    place.check()?;
    // SAFETY: the caller gives a place for the newer structure, which is as large as `bytes`.
    unsafe { place.pointer().cast::<u8>().write_bytes(0, bytes) };
    place.set(value)
}

runtime_api! {
    fn cudaCreateTextureObject(
        object: Out<u64>,
        resource: In<ResourceDesc>,
        texture: In<TextureDescV2>,
        view: In<ResourceViewDesc>,
    ) {
        object.check()?;
        object.set(texture::create_texture(resource.get()?, texture.get()?, view.get_if_given())?)
    }

    fn cudaCreateTextureObject_11(
        object: Out<u64>,
        resource: In<ResourceDesc>,
        texture: In<TextureDesc>,
        view: In<ResourceViewDesc>,
    ) {
        object.check()?;
        let texture = TextureDescV2 { base: texture.get()?, seamless_cubemap: 0 };
        object.set(texture::create_texture(resource.get()?, texture, view.get_if_given())?)
    }

    fn cudaCreateTextureObject_v2(
        object: Out<u64>,
        resource: In<ResourceDesc>,
        texture: In<TextureDescV2>,
        view: In<ResourceViewDesc>,
    ) {
        object.check()?;
        object.set(texture::create_texture(resource.get()?, texture.get()?, view.get_if_given())?)
    }

    fn cudaDestroyTextureObject(object: u64) {
        texture::destroy_texture(object)
    }

    fn cudaGetTextureObjectResourceDesc(description: Out<ResourceDesc>, object: u64) {
        description.set(texture::texture(object)?.resource)
    }

    fn cudaGetTextureObjectResourceDesc_13(description: Out<ResourceDesc>, object: u64) {
        set_with_zeros(description, texture::texture(object)?.resource, RESOURCE_DESC_BYTES_13)
    }

    fn cudaGetTextureObjectTextureDesc(description: Out<TextureDescV2>, object: u64) {
        description.set(texture::texture(object)?.texture)
    }

    fn cudaGetTextureObjectTextureDesc_11(description: Out<TextureDesc>, object: u64) {
        description.set(texture::texture(object)?.texture.base)
    }

    fn cudaGetTextureObjectTextureDesc_v2(description: Out<TextureDescV2>, object: u64) {
        description.set(texture::texture(object)?.texture)
    }

    fn cudaGetTextureObjectResourceViewDesc(description: Out<ResourceViewDesc>, object: u64) {
        description.set(texture::texture(object)?.view.ok_or(CudaError::InvalidValue)?)
    }

    fn cudaGetTextureObjectResourceViewDesc_13(description: Out<ResourceViewDesc>, object: u64) {
        let view = texture::texture(object)?.view.ok_or(CudaError::InvalidValue)?;
        set_with_zeros(description, view, RESOURCE_VIEW_DESC_BYTES_13)
    }

    fn cudaCreateSurfaceObject(object: Out<u64>, resource: In<ResourceDesc>) {
        object.check()?;
        object.set(texture::create_surface(resource.get()?)?)
    }

    fn cudaDestroySurfaceObject(object: u64) {
        texture::destroy_surface(object)
    }

    fn cudaGetSurfaceObjectResourceDesc(description: Out<ResourceDesc>, object: u64) {
        description.set(texture::surface(object)?.resource)
    }

    fn cudaGetSurfaceObjectResourceDesc_13(description: Out<ResourceDesc>, object: u64) {
        set_with_zeros(description, texture::surface(object)?.resource, RESOURCE_DESC_BYTES_13)
    }
}
