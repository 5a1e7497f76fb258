//! Compiles the BPF programs, where the feature `bpf` is on.

fn main() -> std::process::ExitCode {
    eke_bpf::compile::build("latency")
}
