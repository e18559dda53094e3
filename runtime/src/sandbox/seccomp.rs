//! Takes system calls away from the calling thread and every process that it starts: sockets, and
//! whatever could undo or walk around a confinement.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// Refused whatever the arguments.
const REFUSED: [i64; 34] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Opens sockets without the `socket` call.
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_acct,
    libc::SYS_quotactl,
];

/// Kinds of sockets that stay with `network: true`. Local ones do not: a container engine's
/// socket is a way out.
const NETWORK_FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Restricts the calling thread for good.
pub(super) fn restrict_this_thread(network: bool) -> Result<(), seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.map(|call| (call, Vec::new())).into();
    let socket_rules = if network { vec![other_families()?] } else { Vec::new() };
    rules.insert(libc::SYS_socket, socket_rules);
    rules.insert(libc::SYS_clone, vec![new_user_namespace()?]);
    apply(rules, libc::EPERM)?;
    // Its flags are out of a filter's sight. "Not implemented" makes libc use `clone`.
    apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn apply(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<(), seccompiler::Error> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)
}

fn other_families() -> Result<SeccompRule, seccompiler::Error> {
    let is_not = |family: i32| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let conditions = NETWORK_FAMILIES.into_iter().map(is_not).collect::<Result<Vec<_>, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

fn new_user_namespace() -> Result<SeccompRule, seccompiler::Error> {
    let flag = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    let has_flag = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
    Ok(SeccompRule::new(vec![has_flag])?)
}
