package grant

import (
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// State is the state of a plugin under the operator's consents.
type State string

// States of a plugin.
const (
	// Pending plugins wait for the operator's approval.
	Pending State = "pending"
	// Approved plugins may run.
	Approved State = "approved"
	// Revoked plugins were approved once and may not run any more, or are not wanted.
	Revoked State = "revoked"
)

// UpdateRule decides about a new version of an approved plugin that asks for no more than the approved one.
type UpdateRule string

// Update rules. The zero value means Ask.
const (
	// Ask makes every new version pending.
	Ask UpdateRule = "ask"
	// SamePermissions approves such a version.
	SamePermissions UpdateRule = "same-permissions"
)

// Decision is the result of Decide for one version of a plugin.
type Decision struct {
	State State
	// Reason explains why the plugin is pending or revoked. It is zero for an approved plugin.
	Reason Reason
	// NeedsConsent reports that the operator's consent is the remedy.
	NeedsConsent bool
	// Additions are the permissions of a pending version beyond the consent, in English.
	Additions []string
	// Consent is the consent of an approved plugin. Nil otherwise.
	Consent *Consent
	// Unrecorded reports that the update rule approved this version, and that Consent must still be recorded with
	// File.Approve. The plugin may run before that, and also if the file cannot be written, because the next decision
	// is the same.
	Unrecorded bool
}

// Decide decides whether a version of a plugin may run. m is its valid manifest, digest the digest of its file.
func (f *File) Decide(m *manifest.Manifest, digest string, rule UpdateRule) Decision {
	c, ok := f.lookup(m.Name)
	if !ok {
		return pending(m, nil, bilingual("plugin %s is new", "プラグイン %s はまだ承認されていません", m.Name))
	}
	if !c.RevokedAt.IsZero() {
		cause := bilingual("plugin %s was revoked on %s", "プラグイン %s の承認は %s に取り消されました", m.Name,
			c.RevokedAt.Format(time.DateOnly))
		if c.Declined() {
			cause = bilingual("plugin %s is not wanted since %s", "プラグイン %s は %s に不要とされました", m.Name,
				c.RevokedAt.Format(time.DateOnly))
		}
		d := pending(m, &c, cause)
		d.State = Revoked
		return d
	}
	asked := m.Permissions
	// the same file was approved, perhaps by a version of hako that did not record limits and claims
	if c.Digest == digest {
		asked.Limits, asked.Claims = c.Asked.Limits, c.Asked.Claims
	}
	if additions := Additions(c.Asked, asked, "en"); len(additions) > 0 {
		d := pending(m, &c, manifest.Text{
			"en": fmt.Sprintf("plugin %s %s asks for more than was approved: %s", m.Name, m.Version,
				strings.Join(additions, "; ")),
			"ja": fmt.Sprintf("プラグイン %s %s は、承認された範囲を超える権限を求めています: %s", m.Name, m.Version,
				strings.Join(Additions(c.Asked, asked, "ja"), "、")),
		})
		d.Additions = additions
		return d
	}
	switch {
	case c.Digest == digest:
		return Decision{State: Approved, Consent: &c}
	case rule == SamePermissions:
		update := c.updated(m, digest)
		return Decision{State: Approved, Consent: &update, Unrecorded: true}
	}
	return pending(m, &c, bilingual("the file of plugin %s has changed since version %s was approved",
		"プラグイン %s のファイルは、バージョン %s が承認された後に変わりました", m.Name, c.Version))
}

// pending is the decision about a plugin that waits for consent. before is an earlier consent, or nil.
func pending(m *manifest.Manifest, before *Consent, cause manifest.Text) Decision {
	return Decision{State: Pending, NeedsConsent: true, Reason: Reason{Cause: cause}.withApproval(m, before)}
}

// updated returns the consent for a new version that asks for no more.
func (c Consent) updated(m *manifest.Manifest, digest string) Consent {
	c.Version, c.Digest, c.Asked = m.Version, digest, sortedPermissions(m.Permissions)
	c.ApprovedAt, c.ApprovedBy = time.Time{}, "update rule "+string(SamePermissions)
	mounts, http := map[string]Mount{}, map[string]HTTPMapping{}
	for _, p := range c.Asked.Files {
		mounts[p.Mount] = c.Mounts[p.Mount]
	}
	for _, p := range c.Asked.HTTP {
		if mapping, ok := c.HTTP[p.Name]; ok {
			if p.Credential == "" {
				mapping.Credential = ""
			}
			http[p.Name] = mapping
		}
	}
	c.Mounts, c.HTTP, c.Exec = mounts, http, execUpdated(c.Exec, c.Asked.Exec)
	return c
}
