//! `eke-bench lab startup`: one launch of a program, or the second reader on its disk; a process of `eke bench startup`.

use eke_bench_startup::launcher::Task;
use eke_bench_startup::{launch, reader};
use eke_present::exit::{Failure, Outcome, Status};

/// The verb. It ends with its standard input.
pub fn run(task: &str) -> Outcome {
    let task: Task = serde_json::from_str(task)
        .map_err(|e| Failure::new(Status::Usage, format!("this is not what a launch can do: {e}")))?;
    let (input, mut out) = (std::io::stdin().lock(), std::io::stdout());
    match task {
        Task::Launch(spec) => launch::run(&spec, input, &mut out),
        Task::Read(spec) => {
            reader::run(&spec, &input, &mut out).map_err(|why| Failure::new(Status::Failed, why))?;
        }
    }
    Ok(Status::Done)
}
