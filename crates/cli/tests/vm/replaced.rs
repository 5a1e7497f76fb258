//! What another machine has replaced on an NFS server is found at the first open, as on the NFS mount itself. The client believes names and attributes
//! for ten minutes here, so each step begins with what was there before.

use super::{EXPORT, with_nfs};

const SCRIPT: &str = r#"
serves
reads() { [ "$(cat $1 2>&1)" = "$2" ] || die "$1 reads $(cat $1 2>&1), not $2"; }
# ext4 gives a new file the number of a removed one, once nfsd has closed that.
replace() { waits "the number $number" 'rm -f /export/new; echo new > /export/new; [ "$(stat -c %i /export/new)" = "$number" ]'; mv /export/new $1; }
anew() { rm -r $1; mkdir $1; }
for mount in nfs fast; do
    top=/export/$mount; at=/$mount/$mount
    mkdir $top; mkdir $top/d; echo one > $top/a; echo two > $top/b; echo three > $top/d/f
    reads $at/a one; reads $at/b two; reads $at/d/f three
    step $mount: a file that has the number of another one, which was removed
    number=$(stat -c %i $top/a); rm $top/a; replace $top/b
    reads $at/b new
    step $mount: a file in a directory that was replaced
    anew $top/d; echo four > $top/d/f
    reads $at/d/f four
    step $mount: a list
    anew $top/d; echo five > $top/d/g
    [ "$(ls $at/d 2>&1)" = g ] || die "the list: $(ls $at/d 2>&1)"
    reads $at/d/g five
    step $mount: a change
    anew $top/d; echo six > $at/d/h || die "no file can be made"
    reads $top/d/h six
    anew $top/d; mkdir $at/d/d || die "no directory can be made"
    anew $top/d; touch $top/d/i; mv $at/d/i $at/d/j || die "no name can be changed"
    anew $top/d; touch $top/d/k; rm $at/d/k || die "no name can be removed"
done
umount /fast
"#;

#[test]
fn what_the_server_has_replaced_is_found_at_the_first_open() {
    with_nfs(EXPORT, SCRIPT);
}
