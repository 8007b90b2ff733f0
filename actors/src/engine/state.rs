//! A unit's state as bytes: written down when a run stops half way, read back into a unit that is freshly built.
//!
//! A unit is three things: parameters, which the topology gives again; wiring, which is built again; and state, a plain value that
//! serde can write. Only the state is saved, and [`restore_state`] replaces it whole. Kernels' code is not part of a state: it is
//! named by number, and completed from a [`CodeSource`].

use balar_protocol::Payload;
use balar_protocol::cta::CtaMessage;
use balar_protocol::cuda::{Code, CudaMessage, KernelLaunch, ProgramId};
use balar_protocol::device_launch::{DeviceOperation, DeviceWork};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Why a state cannot be saved or restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The unit keeps state that it cannot write.
    #[error("this kind of unit cannot save its state")]
    Unsupported,
    /// The bytes are not those of such a state.
    #[error("the state cannot be read or written: {0}")]
    Encoding(#[from] postcard::Error),
    /// Bytes follow the state.
    #[error("{0} bytes follow the state")]
    TrailingBytes(usize),
    /// The state is of a unit with other parameters.
    #[error("the state is of a unit with other parameters: {0}")]
    Mismatch(String),
    /// The state names code that is not loaded.
    #[error("the state names code number {}, which is not loaded", .0.0)]
    UnknownCode(ProgramId),
}

/// Where the code that a restored state names comes from.
pub trait CodeSource {
    /// The code of this number; `None` where none is loaded.
    fn code(&self, id: ProgramId) -> Option<Code>;
}

/// No code at all, for states that name none.
impl CodeSource for () {
    fn code(&self, _: ProgramId) -> Option<Code> {
        None
    }
}

/// A state as bytes.
///
/// # Errors
///
/// [`StateError::Encoding`] where serde cannot write it.
pub fn save_state<T: Serialize>(state: &T) -> Result<Vec<u8>, StateError> {
    Ok(postcard::to_stdvec(state)?)
}

/// The state that [`save_state`] wrote. Its codes are their numbers alone: see [`complete_code`].
///
/// # Errors
///
/// [`StateError::Encoding`] or [`StateError::TrailingBytes`] where the bytes are no `T`.
pub fn restore_state<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StateError> {
    let (state, rest) = postcard::take_from_bytes(bytes)?;
    if rest.is_empty() { Ok(state) } else { Err(StateError::TrailingBytes(rest.len())) }
}

/// Gives a code that was read back its decoded program. Number 0 is no code.
///
/// # Errors
///
/// [`StateError::UnknownCode`] where no code of its number is loaded.
pub fn complete_code(code: &mut Code, codes: &dyn CodeSource) -> Result<(), StateError> {
    let id = code.id();
    if id != ProgramId(0) {
        *code = codes.code(id).ok_or(StateError::UnknownCode(id))?;
    }
    Ok(())
}

/// [`complete_code`] for a launch that was read back.
///
/// # Errors
///
/// As [`complete_code`].
pub fn complete_launch(launch: &mut Arc<KernelLaunch>, codes: &dyn CodeSource) -> Result<(), StateError> {
    complete_codes(Arc::make_mut(launch), codes)
}

/// [`complete_code`] for work that a kernel has put into a stream.
///
/// # Errors
///
/// As [`complete_code`].
pub fn complete_device_work(work: &mut DeviceWork, codes: &dyn CodeSource) -> Result<(), StateError> {
    match &mut work.operation {
        DeviceOperation::Launch(launch) => complete_codes(launch, codes),
        DeviceOperation::Record(_) | DeviceOperation::Wait(_) => Ok(()),
    }
}

/// Completes the code of a launch, and of the launches that its kernel can make.
fn complete_codes(launch: &mut KernelLaunch, codes: &dyn CodeSource) -> Result<(), StateError> {
    complete_code(&mut launch.code, codes)?;
    // Most launches launch nothing.
    if !launch.device_kernels.is_empty() {
        let mut kernels = launch.device_kernels.to_vec();
        kernels.iter_mut().try_for_each(|kernel| complete_code(&mut kernel.code, codes))?;
        launch.device_kernels = kernels.into();
    }
    Ok(())
}

/// [`complete_code`] for a message that was read back.
///
/// # Errors
///
/// As [`complete_code`].
pub fn complete_payload(payload: &mut Payload, codes: &dyn CodeSource) -> Result<(), StateError> {
    match payload {
        Payload::Cuda(CudaMessage::Launch(launch)) => complete_launch(launch, codes),
        Payload::Cta(CtaMessage::Launch(cta)) => complete_launch(&mut cta.launch, codes),
        Payload::Cta(CtaMessage::DeviceWork(work)) => complete_device_work(work, codes),
        Payload::Cuda(_)
        | Payload::Cta(_)
        | Payload::Memory(_)
        | Payload::Translation(_)
        | Payload::Copy(_)
        | Payload::Managed(_)
        | Payload::Migration(_)
        | Payload::Cluster(_)
        | Payload::Custom(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::cta::CtaLaunch;
    use balar_protocol::cuda::LaunchId;

    struct One(Code);

    impl CodeSource for One {
        fn code(&self, id: ProgramId) -> Option<Code> {
            (id == self.0.id()).then(|| self.0.clone())
        }
    }

    fn launch(code: Code) -> Arc<KernelLaunch> {
        Arc::new(KernelLaunch {
            context: balar_protocol::ContextId::first(0),
            id: LaunchId(1),
            code,
            name: "k".into(),
            grid: [1; 3],
            cluster: None,
            block: [32, 1, 1],
            dynamic_shared_bytes: 0,
            shared_bytes: 0,
            preferred_carve_out: None,
            registers_per_thread: 16,
            local_bytes: 0,
            parameters: [1, 2, 3].into(),
            stream: 0,
            queue: 0,
            priority: 0,
            grid_workspace: 0,
            l2_policy: None,
            detail: Default::default(),
            is_profiled: false,
            range: None,
            origin: None,
            device_kernels: Arc::new([]),
        })
    }

    /// A message with code comes back as its number, and is completed from the loaded code.
    #[test]
    fn codes_are_named_by_number_and_completed() {
        let code = Code::new(ProgramId(7), Arc::new(42_u32));
        let cta = CtaLaunch {
            launch: launch(code.clone()),
            cta: [3, 2, 1],
            slot: 5,
            sub_cores: [0, 1].into(),
            carve_out: 0,
            cluster: None,
        };
        let bytes = save_state(&Payload::Cta(CtaMessage::Launch(Box::new(cta)))).expect("plain values");
        let mut read: Payload = restore_state(&bytes).expect("just written");
        assert_eq!(complete_payload(&mut read, &()), Err(StateError::UnknownCode(ProgramId(7))));
        complete_payload(&mut read, &One(code)).expect("loaded");
        let Payload::Cta(CtaMessage::Launch(cta)) = read else { panic!("another message: {read:?}") };
        assert_eq!(cta.launch.code.program::<u32>().as_deref(), Some(&42));
        assert_eq!((cta.cta, cta.slot, &*cta.launch.parameters), ([3, 2, 1], 5, &[1, 2, 3][..]));
    }

    #[test]
    fn bytes_of_another_state_are_refused() {
        let bytes = save_state(&(1_u32, 2_u32)).expect("plain values");
        assert_eq!(restore_state::<u32>(&bytes), Err(StateError::TrailingBytes(1)));
        assert!(matches!(restore_state::<(u32, u32, u32)>(&bytes), Err(StateError::Encoding(_))));
    }
}
