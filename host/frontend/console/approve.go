package console

import (
	"cmp"
	"errors"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// ask shows what a plugin asks for. Approving it sends Digest and Version back, and the consent is valid only for them.
type ask struct {
	Digest  string   `json:"digest"`
	Version string   `json:"version"`
	Asks    []string `json:"asks"`
	// Additions lists what is asked for beyond AdditionsTo, the version that was approved before.
	Additions   []string `json:"additions,omitzero"`
	AdditionsTo string   `json:"additionsTo,omitempty"`
	Gets        []string `json:"gets"`
	// Ready reports whether the plugin can be approved as it is. If not, Problem says why, and Remedy what to do.
	Ready   bool   `json:"ready"`
	Problem string `json:"problem,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// proposal is a possible consent, with all grants of the plugin.
type proposal struct {
	*grant.Proposal
	plugin *host.Status
	grants grant.Grants
	err    error
	// unconfined reports whether err is about the kernel, which cannot confine commands here.
	unconfined bool
}

func (c *Console) consents(q *request) ([]grant.Consent, error) {
	if c.options.Consents == nil {
		return nil, nil
	}
	file, err := c.readConsents(q)
	if err != nil {
		return nil, err
	}
	return file.Consents(), nil
}

// readConsents reads the operator's consents. Admins see the cause of a failure: somebody may have edited the file.
func (c *Console) readConsents(q *request) (Consents, error) {
	file, err := c.options.Consents.LoadConsents(q.lasting())
	if err != nil && faultOf(err) == nil && q.session.Role.includes(Admin) {
		return nil, &fault{code: codeUnavailable, text: manifest.Text{
			"en": "The consents cannot be read: " + err.Error(), "ja": "承認の記録を読み込めません: " + err.Error(),
		}, remedy: manifest.Text{"en": "Fix the file (consents in hako.yaml).",
			"ja": "ファイルを修正してください (hako.yaml の consents)。"}}
	}
	return file, err
}

// faultConsents converts an error of changing the consents, such as missing rights to the file, to one with a remedy.
// command does the same at a terminal.
func faultConsents(err error, command string) error {
	if err == nil || faultOf(err) != nil {
		return err
	}
	return &fault{code: codeUnavailable, text: manifest.Text{
		"en": "The consents cannot be written: " + err.Error(), "ja": "承認の記録を書き込めません: " + err.Error(),
	}, remedy: manifest.Text{
		"en": "At a terminal, as a user who may write them: " + command, "ja": "書き込みのできるユーザーで、ターミナルで実行してください: " +
			command,
	}}
}

// propose makes a proposal for the plugin with the choices. Nil choices mean those of an earlier consent.
func (c *Console) propose(p *host.Status, consents []grant.Consent, choices *grant.Choices, q *request) *proposal {
	made := &proposal{Proposal: grant.Propose(consents, p.Manifest, p.Digest, q.session.Name), plugin: p}
	made.Quota, made.Roots = c.options.Host.MountQuota(), c.options.Host.Roots()
	if choices != nil {
		made.err = made.Settle(*choices)
	}
	if made.err == nil {
		made.grants, made.err = made.Grants(c.options.Settings.Plugin(p.Name).Config)
	}
	if made.err == nil && c.options.Consents != nil {
		made.err = c.options.Consents.CheckGrants(p.Name, made.grants)
		made.unconfined = made.err != nil
	}
	return made
}

// version identifies the proposal. It is empty if the plugin cannot be approved.
func (p *proposal) version() string {
	if p.err != nil {
		return ""
	}
	return p.Version(p.grants)
}

func (p *proposal) ask(c *Console, language string) *ask {
	a := &ask{Digest: p.Consent.Digest, Version: p.version(), Asks: grant.Explain(p.Manifest.Permissions, language),
		Gets: []string{}}
	if p.Updates() {
		a.AdditionsTo = p.Before.Version
		a.Additions = append([]string{}, grant.Additions(p.Before.Asked, p.Manifest.Permissions, language)...)
	}
	switch {
	case p.err != nil:
		a.Problem, a.Remedy = problemOf(p.err, language), p.command()
	case c.options.Consents == nil:
		a.Problem = "there is no file for consents: set consents in hako.yaml"
	default:
		a.Ready, a.Gets = true, p.grants.Explain(language)
	}
	return a
}

// problemOf is the error of a proposal in a language: the choices that are missing or wrong, if it is about those.
func problemOf(err error, language string) string {
	var texts []string
	for _, wrong := range grant.ChoiceErrors(err) {
		texts = append(texts, wrong.Field+": "+wrong.Text.In(language))
	}
	return cmp.Or(strings.Join(texts, "; "), err.Error())
}

// command returns the command that approves the plugin, with what has to be chosen.
func (p *proposal) command() string {
	return grant.ApproveCommand(p.Consent.Name, p.Consent.Asked, &p.Consent)
}

// approvable returns the request's plugin, read again from its folder, and the consents.
func (c *Console) approvable(q *request) (*host.Status, Consents, error) {
	if c.options.Consents == nil {
		return nil, nil, &fault{code: codeUnavailable,
			text: said("there is no file for consents: set consents in hako.yaml")}
	}
	if err := c.options.Host.Load(q.lasting()); err != nil { // compare with the current files
		return nil, nil, err
	}
	p, err := c.findPlugin(q.PathValue("name"))
	if err != nil {
		return nil, nil, err
	}
	if p.Manifest == nil {
		return nil, nil, invalid("the plugin cannot be approved: it is %s: %s", p.State, whyNot(p, q.language))
	}
	file, err := c.readConsents(q)
	return p, file, err
}

// approve records consent to the plugin as shown.
func (c *Console) approve(q *request) (any, error) {
	now, err := c.choose(q)
	if err != nil {
		return nil, err
	}
	if now.shown == "" || now.shown != now.version() {
		return nil, now.conflict(c, q)
	}
	p := now.plugin
	d := &audit.Operation{Action: "plugin.approve", Target: audit.Target{Plugin: p.Name, Digest: p.Digest},
		Detail: map[string]string{
			"version": p.Version, "gets": strings.Join(now.grants.Explain("en"), "\n"),
		}}
	err = c.audited(q, d, func() error { return now.file.Approve(q.lasting(), now.Consent) })
	if err := faultConsents(err, now.command()); err != nil {
		return nil, err
	}
	return c.reloadPlugin(q)
}

// conflict refuses consent to a proposal that has changed since it was shown, and shows the current one.
func (p *proposal) conflict(c *Console, q *request) *fault {
	return &fault{code: codeConflict, ask: p.ask(c, q.language), text: faultChanged.text, remedy: faultChanged.remedy}
}

var faultChanged = &fault{code: codeConflict, text: manifest.Text{
	"en": "The plugin, what it asks for or what it would get has changed since this was shown.",
	"ja": "表示後に、プラグイン、その要求、または与えられる権限が変わりました。",
}, remedy: manifest.Text{"en": "Look at it again, and then decide.", "ja": "もう一度確認してから判断してください。"}}

// reloadPlugin applies the changed consents and returns the plugin's new state.
func (c *Console) reloadPlugin(q *request) (any, error) {
	if err := c.options.Host.Load(q.lasting()); err != nil {
		return nil, err
	}
	return c.plugin(q)
}

// revoke revokes the consent to a plugin, or records that one that was never approved is not wanted.
func (c *Console) revoke(q *request) (any, error) {
	var body struct{ Digest string }
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if c.options.Consents == nil {
		return nil, notFound("consent for the plugin", q.PathValue("name"))
	}
	p, err := c.findPlugin(q.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if body.Digest != "" && body.Digest != p.Digest && body.Digest != p.Serving {
		return nil, faultChanged
	}
	file, err := c.readConsents(q)
	if err != nil {
		return nil, err
	}
	d := &audit.Operation{Action: "plugin.revoke", Target: audit.Target{Plugin: p.Name, Digest: p.Serving}}
	err = c.audited(q, d, func() error {
		if p.Manifest == nil {
			return file.Revoke(q.lasting(), p.Name, q.session.Name)
		}
		return file.Decline(q.lasting(), p.Manifest, p.Digest, q.session.Name)
	})
	if errors.Is(err, grant.ErrNoConsent) {
		return nil, notFound("consent for the plugin", p.Name)
	}
	if err := faultConsents(err, "hako plugin revoke "+p.Name); err != nil {
		return nil, err
	}
	return c.reloadPlugin(q)
}
