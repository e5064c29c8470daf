package redrive_test

import (
	"strings"
	"testing"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/redrive"
)

// A user that may remove from lists and not add to them loses nothing: it is refused before anything is taken.
func TestWithoutPermissionToPush(t *testing.T) { // R1, B22
	t.Parallel()
	server := testredis.Server(t, redisproc.Config{})
	r := &rig{t: t, layout: redrive.Legacy}
	r.Client = testredis.Client(t, server.URL())
	r.bury(record(1, failed("orders")), record(2, failed("orders")))
	before := r.letters()
	if err := r.Client.Do(t.Context(), "acl", "setuser", "half", "on", ">secret", "~*", "+@all", "-rpush").Err(); err != nil {
		t.Fatal(err)
	}
	dead := r.open(testredis.Client(t, strings.Replace(server.URL(), "redis://", "redis://half:secret@", 1)))
	if _, err := dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{}); err == nil || !strings.Contains(err.Error(), "rpush") {
		t.Errorf("error %v, want the command that is refused", err)
	}
	same(t, "dead letters", r.letters(), before)
}
