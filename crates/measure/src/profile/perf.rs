//! What `perf script -F comm,ip,sym` prints, as folded stacks.

use std::collections::BTreeMap;

/// Folds samples: each is a line with the name of its thread, then a line for each frame from the
/// innermost out, with address and name, then an empty line.
pub(super) fn folded(script: &str) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for sample in script.split("\n\n") {
        let mut lines = sample.lines().map(str::trim).filter(|line| !line.is_empty());
        let Some(thread) = lines.next() else { continue };
        let names = lines.map(|line| line.split_once(' ').map_or("[unknown]", |(_, name)| name));
        let mut frames: Vec<String> = names.map(|name| name.replace(';', ",")).collect();
        frames.push(thread.replace(';', ","));
        frames.reverse();
        *counts.entry(frames.join(";")).or_default() += 1;
    }
    counts.into_iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_perf_are_folded_from_the_outermost_frame_in() {
        let script = "relay-1 \n\
                      \x20       ffffffff81b2 tcp_sendmsg\n\
                      \x20       7f01 __send\n\
                      \x20       5601 <a::B as c::D<[u8; 4]>>::run\n\n\
                      relay-1 \n\
                      \x20       7f01 __send\n\
                      \x20       5601 <a::B as c::D<[u8; 4]>>::run\n\n\
                      relay-1 \n\
                      \x20       7f01 __send\n\
                      \x20       5601 <a::B as c::D<[u8; 4]>>::run\n\n";
        assert_eq!(
            folded(script),
            "relay-1;<a::B as c::D<[u8, 4]>>::run;__send 2\n\
             relay-1;<a::B as c::D<[u8, 4]>>::run;__send;tcp_sendmsg 1\n"
        );
        assert_eq!(folded(""), "");
    }
}
