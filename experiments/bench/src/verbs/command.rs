//! The command line that repeats an experiment, for its report: what the user asked for, as clap parsed it.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use eke_model::shell::word;

/// Options that do not change what is measured.
const SKIPPED: [&str; 4] = ["output", "html", "force", "any_commit"];

/// `eke bench VERB`, the options that were given in the order of the help, and what has no option. `None` without a verb.
pub fn again(command: &Command, matches: &ArgMatches) -> Option<String> {
    let (verb, given) = matches.subcommand()?;
    let all = command.find_subcommand(verb)?.get_arguments().filter(|arg| is_given(arg, given));
    let (files, options): (Vec<&Arg>, Vec<&Arg>) = all.partition(|arg| arg.is_positional());
    let mut words = vec!["eke".to_owned(), "bench".to_owned(), verb.to_owned()];
    words.extend(options.into_iter().chain(files).flat_map(|arg| words_of(arg, given)));
    Some(words.join(" "))
}

fn is_given(arg: &Arg, given: &ArgMatches) -> bool {
    let id = arg.get_id().as_str();
    !SKIPPED.contains(&id) && given.value_source(id) == Some(ValueSource::CommandLine)
}

fn words_of(arg: &Arg, given: &ArgMatches) -> Vec<String> {
    let values = given.get_raw(arg.get_id().as_str()).into_iter().flatten();
    let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
    let Some(option) = arg.get_long().map(|long| format!("--{long}")) else {
        return values.iter().map(|value| word(value)).collect();
    };
    match arg.get_value_delimiter() {
        _ if !arg.get_action().takes_values() => vec![option],
        Some(delimiter) => vec![option, word(&values.join(&delimiter.to_string()))],
        None => values.iter().flat_map(|value| [option.clone(), word(value)]).collect(),
    }
}

#[cfg(test)]
pub mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::{Args, Verb};

    /// The experiment that a line asks for.
    pub fn parsed(line: &str) -> Verb {
        Args::parse_from(words(line)).verb
    }

    /// `eke bench` is executed as `eke-bench`. Quoted words have no quotes in them.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec!["eke-bench".to_owned()];
        for (number, part) in line.split('\'').enumerate() {
            match number % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words.drain(1..3);
        words
    }

    fn command(words: &[String]) -> String {
        let command = Args::command();
        again(&command, &command.clone().try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn the_command_repeats_the_experiment() {
        let lines = [
            "eke bench store --corpus ./files --seconds 1.5 --block 131072 --quick",
            "eke bench reads --quick --dir /srv",
            "eke bench names --dir '/a b'",
            "eke bench warm --disk sd --size 10M --quick",
            "eke bench trace a.csv --quick b",
            "eke bench tiers --seed 7",
            "eke bench web --corpus /a/b",
            "eke bench web --variants ext4x2,eke --axes base,fast-disk --requests uniform --server tomcat --disk none",
            "eke bench farm --quick --variants shared,faults --memory 64M --content 100M --zipf 1.1 --phase 3",
            "eke bench startup --all --disk laptop",
            "eke bench startup --programs xterm,writer --disk none,laptop --variants cold --no-harm --no-ten",
            "eke bench link --cpus atom,full --links 1g --rounds 9 --no-x11",
            "eke bench ltsp --quick --clients 3 --sizes-mib 124,300 --variants 'eke,plain LTSP' --cache /c --mirror http://m",
            "eke bench io --variants eke,default --writers btrfs --disk laptop --rate 10",
            "eke bench guard --memory-mib 300",
            "eke bench paging --quick",
            "eke bench switch --variations --memory 100M",
            "eke bench capacity --variants 'none,tuned zram' --in machine --kernel-of trixie --ballast 1500",
            "eke bench replay --scenario two-users --days 3",
            "eke bench replay mine.csv --budget 64M --form purdue --budget 128M",
        ];
        for line in lines {
            let first = words(line);
            let again = words(&command(&first));
            assert_eq!(command(&again), command(&first), "{line}");
            let [first, again] = [first, again].map(|words| format!("{:?}", Args::parse_from(words)));
            assert_eq!(again, first, "{line}");
        }
    }

    #[test]
    fn it_has_what_was_given_but_files_of_the_result() {
        let line = "eke bench paging --variants 'none,tuned zram' --output a.json --quick --html a.html --force --json";
        assert_eq!(command(&words(line)), "eke bench paging --quick --variants 'none,tuned zram'");
        let line = "eke bench web --grid --output a.json --any-commit --seconds 5";
        assert_eq!(command(&words(line)), "eke bench web --grid --seconds 5");
        let line = "eke bench replay --budget 64M mine.csv --budget 1G";
        assert_eq!(command(&words(line)), "eke bench replay --budget 64M --budget 1G mine.csv");
        let mut line = words("eke bench paging --documents X");
        line[3] = "/a b/it's".to_owned();
        assert_eq!(command(&line), r"eke bench paging --documents '/a b/it'\''s'");
    }
}
