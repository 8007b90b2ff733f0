//! Lists of what there is, help, completion and the manual page.

use crate::{call, json};

#[test]
fn catalogues_list_what_there_is() {
    let units = call(&["units"]);
    assert_eq!(units.code, 0);
    for kind in balar_actors::kinds::UNITS {
        let listed = units.stdout.lines().find(|line| line.split_whitespace().next() == Some(kind.name));
        let listed = listed.unwrap_or_else(|| panic!("{}: {}", kind.name, units.stdout));
        let count = |count: usize| listed.split_whitespace().any(|word| word == count.to_string());
        assert!(count(kind.parameters.len()) && count(kind.counters.len()), "{listed}");
        assert!(kind.ports.iter().all(|port| listed.contains(port.name)), "{listed}");
    }
    let link = call(&["units", "Link"]).stdout;
    for word in ["latency", "bandwidth", "up", "down", "queue_maximum"] {
        assert!(link.contains(word), "{word}: {link}");
    }
    let json = json(&call(&["workloads", "--format", "json"]).stdout);
    assert!(json.as_array().is_some_and(|list| list.iter().any(|workload| workload["name"] == "lud")));
}

#[test]
fn shells_and_man_know_the_arguments() {
    for (shell, said) in
        [("bash", "complete -F"), ("zsh", "#compdef balar-actors"), ("fish", "complete -c balar-actors")]
    {
        let script = call(&["completions", shell]);
        assert_eq!(script.code, 0, "{}", script.stderr);
        assert!(script.stdout.contains(said) && script.stdout.contains("max-wall"), "{shell}");
        // Topologies, workloads, metrics under any name, units.
        for name in ["v100_sxm2_node", "pointer_chase", "gld_transactions", "sm__warps_launched", "L2Slice"] {
            assert!(script.stdout.contains(name), "{shell}: {name}");
        }
    }
    let page = call(&["man"]).stdout;
    for said in [".TH balar-actors 1", "\\-\\-max\\-wall", "BALAR-ACTORS REPLAY", "\\-\\-unchecked"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(!page.contains("CLEAR"), "what is hidden stays so");
}

#[test]
fn help_names_the_exit_codes() {
    let help = call(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for code in ["0 ", "1 ", "2 ", "3 ", "4 ", "70 ", "130 ", "143 "] {
        assert!(help.stdout.lines().any(|line| line.trim_start().starts_with(code)), "{code}: {}", help.stdout);
    }
}
