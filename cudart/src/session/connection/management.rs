//! Questions of the process to the node without using its devices: the node's description, and the questions of management tools (NVML).
//!
//! It has a connection of its own, which belongs to no thread and makes no call of CUDA: a process that forks afterwards may still use
//! CUDA in its children, as on hardware.

use crate::session::state::process;
use balar_host::call::{Activity, DeviceState, ManagementCall};
use balar_host::tunnel::{Client, Role, SOCKET_VARIABLE};
use balar_host::{Call, CallResult, CudaError, DriverVersion, NodeDescription};
use rustix::process::{Pid, getpid};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The connection of a process, and the simulator's description of the node.
struct Management {
    client: Client,
    node: NodeDescription,
    /// The state of each device when its utilisation was asked for last, and the answer.
    utilization: BTreeMap<u32, (DeviceState, Utilization)>,
}

/// Shares of simulated time, percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    /// Percent of the time in which kernels ran.
    pub kernels: u32,
    /// Percent of the time in which kernels, copies or fills were under way.
    pub busy: u32,
}

impl Utilization {
    /// Between two states of a device; `None` where no time has passed.
    fn between(before: &DeviceState, now: &DeviceState) -> Option<Utilization> {
        let time = now.now.checked_sub(before.now).filter(|time| *time > 0)?;
        let share = |before: u64, now: u64| {
            let share = u128::from(now.saturating_sub(before)) * 100 / u128::from(time);
            share.min(100) as u32
        };
        Some(Utilization { kernels: share(before.kernels, now.kernels), busy: share(before.busy, now.busy) })
    }
}

/// The connection of one process: a forked child has a copy of its parent's, whose lock another thread may have held.
struct Own {
    process: Pid,
    management: Mutex<Option<Management>>,
}

/// The connection of the process, or of the one it was forked from; null at first. It is never freed.
static OWN: AtomicPtr<Own> = AtomicPtr::new(std::ptr::null_mut());

/// The connection of the calling process.
fn own() -> &'static Own {
    let process = getpid();
    loop {
        let known = OWN.load(Ordering::Acquire);
        // SAFETY: the stored value is never freed.
        if let Some(own) = unsafe { known.as_ref() }.filter(|own| own.process == process) {
            return own;
        }
        let new = Box::into_raw(Box::new(Own { process, management: Mutex::new(None) }));
        if OWN.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: another thread was first, so that nobody knows of this one.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

fn lock(own: &'static Own) -> MutexGuard<'static, Option<Management>> {
    own.management.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `use_it` with the connection of the process.
///
/// # Errors
///
/// `cudaErrorNoDevice` where the program does not run on a simulator; otherwise, the error of a simulator that is gone.
fn with<T>(use_it: impl FnOnce(&mut Management) -> Result<T, CudaError>) -> Result<T, CudaError> {
    let Some(path) = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Err(CudaError::NoDevice);
    };
    if process::is_lost() {
        return Err(process::NO_SIMULATOR);
    }
    let mut management = lock(own());
    if management.as_ref().is_none_or(|management| management.client.has_ended()) {
        let connected = Client::connect(&path, Role::Management);
        let (client, welcome) = connected.map_err(|_| process::NO_SIMULATOR)?;
        *management = Some(Management { client, node: welcome.node, utilization: BTreeMap::new() });
    }
    management.as_mut().map_or(Err(CudaError::Unknown), use_it)
}

/// Is the process connected so?
pub fn is_connected() -> bool {
    // SAFETY: the stored value is never freed.
    let own = unsafe { OWN.load(Ordering::Acquire).as_ref() }.filter(|own| own.process == getpid());
    own.is_some_and(|own| lock(own).is_some())
}

/// The node, with all its devices.
///
/// # Errors
///
/// There is no connection to a simulator, or it does not answer.
pub fn node() -> Result<NodeDescription, CudaError> {
    with(|management| Ok(management.node.clone()))
}

/// The node's number of devices.
///
/// # Errors
///
/// There is no connection to a simulator, or it does not answer.
pub fn device_count() -> Result<u32, CudaError> {
    with(|management| Ok(management.node.devices.len() as u32))
}

/// The work and the contents of a device, by the node's number.
///
/// # Errors
///
/// There is no connection to a simulator, or it does not answer.
pub fn device_state(device: u32) -> Result<DeviceState, CudaError> {
    with(|management| management.device_state(device))
}

/// How much a device was in use since this was asked before: by this process, or in all the time of the run. Where no time has passed, the
/// answer is the same.
///
/// # Errors
///
/// There is no connection to a simulator, or it does not answer.
pub fn utilization(device: u32) -> Result<Utilization, CudaError> {
    with(|management| {
        let now = management.device_state(device)?;
        let (before, answer) = management.utilization.get(&device).copied().unwrap_or_default();
        let answer = Utilization::between(&before, &now).unwrap_or(answer);
        management.utilization.insert(device, (now, answer));
        Ok(answer)
    })
}

/// Whether the simulator keeps the times of this process's work from now on.
///
/// # Errors
///
/// There is no connection to a simulator, or it does not answer.
pub fn record_activity(recorded: bool) -> Result<(), CudaError> {
    with(|management| management.call(0, ManagementCall::RecordActivity(recorded)).map(|_| ()))
}

/// The work of this process that has ended since this was asked before.
///
/// # Errors
///
/// There is no connection to a simulator, or it does not answer.
pub fn take_activity() -> Result<Vec<Activity>, CudaError> {
    with(|management| {
        let mut all = Vec::new();
        loop {
            match management.call(0, ManagementCall::TakeActivity)? {
                CallResult::Activity(more) if more.is_empty() => return Ok(all),
                CallResult::Activity(more) => all.extend(more),
                _ => return Err(CudaError::Unknown),
            }
        }
    })
}

impl Management {
    fn call(&mut self, device: u32, call: ManagementCall) -> Result<CallResult, CudaError> {
        let call = Call::Management(call);
        let reply = self.client.call(device, 0, &call, &[], &mut |_, _| {}).map_err(|_| process::NO_SIMULATOR)?;
        match reply.result {
            CallResult::Error(error) => Err(error),
            result => Ok(result),
        }
    }

    fn device_state(&mut self, device: u32) -> Result<DeviceState, CudaError> {
        match self.call(device, ManagementCall::DeviceState)? {
            CallResult::DeviceState(state) => Ok(state),
            _ => Err(CudaError::Unknown),
        }
    }
}

/// The version of the node's driver; the newest one where there is no node to ask.
pub fn driver_version() -> DriverVersion {
    match process::node() {
        Some(node) => node.description.driver_version,
        None => node().map_or(DriverVersion::NEWEST, |node| node.driver_version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilization_is_a_share_of_the_time_that_has_passed() {
        let state = |now, kernels, busy| DeviceState { now, kernels, busy, ..DeviceState::default() };
        let between = |a: DeviceState, b: DeviceState| Utilization::between(&a, &b);
        let quarter = Utilization { kernels: 25, busy: 50 };
        assert_eq!(between(state(100, 10, 20), state(300, 60, 120)), Some(quarter));
        assert_eq!(between(state(100, 10, 20), state(100, 10, 20)), None);
    }
}
