package grant_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// TestStateIsConsentedTo: a version with longer-lived state asks for more, and the consent records the requested state.
func TestStateIsConsentedTo(t *testing.T) {
	t.Parallel()
	const call, session, shared = manifest.StateCall, manifest.StateSession, manifest.StateShared
	for _, test := range []struct {
		approved, asked manifest.State
		more            bool
	}{
		{"", call, false}, {call, "", false}, {"", session, true}, {call, session, true}, {"", shared, true},
		{session, session, false}, {session, shared, true}, {shared, session, false}, {shared, "", false},
	} {
		approved, asked := manifest.Permissions{State: test.approved}, manifest.Permissions{State: test.asked}
		if got := grant.Additions(approved, asked, "en"); (len(got) > 0) != test.more {
			t.Errorf("from %q to %q: %q", test.approved, test.asked, got)
		}
		path := filepath.Join(t.TempDir(), "consents.yaml")
		file, err := grant.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		m := &manifest.Manifest{Name: "p", Version: "1.0.0", Permissions: approved}
		digest := grant.Digest(manifest.Permissions{})
		consent := grant.Consent{Name: "p", Version: "1.0.0", Digest: digest, Asked: approved, ApprovedBy: "aki",
			ApprovedAt: time.Unix(1, 0)}
		if err := file.Approve(t.Context(), consent); err != nil {
			t.Fatal(err)
		}
		if file, err = grant.Load(path); err != nil {
			t.Fatal(err)
		}
		if d := file.Decide(m, digest, grant.Ask); d.State != grant.Approved {
			t.Errorf("state %q, read again: %s", test.approved, d.Reason)
		}
		m.Permissions = asked
		if d := file.Decide(m, digest, grant.SamePermissions); (d.State == grant.Pending) != test.more {
			t.Errorf("from %q to %q: %s %s", test.approved, test.asked, d.State, d.Reason)
		}
	}
	if grant.Digest(manifest.Permissions{}) != grant.Digest(manifest.Permissions{State: call}) {
		t.Error("the default changes the digest when it is written down")
	}
}
