package console

import (
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// chooseJSON is what there is to choose about a plugin's permissions, as a form: what each asks for, in plain words,
// and what is settled so far.
type chooseJSON struct {
	Digest string        `json:"digest"`
	Files  []filesChoice `json:"files"`
	HTTP   []httpChoice  `json:"http"`
	Exec   *execChoice   `json:"exec,omitempty"`
	Chosen grant.Choices `json:"chosen"`
	// Machines is how many hako runs on, where there are several, and Machine the one of them that looks for folders.
	Machines int    `json:"machines,omitempty"`
	Machine  string `json:"machine,omitempty"`
}

type filesChoice struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Write bool   `json:"write"`
}

type httpChoice struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// URL and Credential are what the plugin asks for. Configured is the address that is set for it in the
	// configuration, and cannot be chosen here.
	URL        string `json:"url"`
	Credential string `json:"credential,omitempty"`
	Configured string `json:"configured,omitempty"`
}

type execChoice struct {
	About string `json:"about"`
	// Programs are those that it asks for; empty where it may be any.
	Programs []string `json:"programs"`
}

// chooses returns the form for a plugin; nil where there is nothing to choose, or nobody could record it.
func (c *Console) chooses(q *request, made *proposal) *chooseJSON {
	asked, p, language := made.Consent.Asked, made.plugin, q.language
	if c.options.Consents == nil || len(asked.Files)+len(asked.HTTP) == 0 && asked.Exec == nil {
		return nil
	}
	form := &chooseJSON{Digest: p.Digest, Files: []filesChoice{}, HTTP: []httpChoice{}, Chosen: made.Choices()}
	about := func(one manifest.Permissions) string { return grant.Explain(one, language)[0] }
	for _, f := range asked.Files {
		form.Files = append(form.Files,
			filesChoice{f.Mount, about(manifest.Permissions{Files: []manifest.FilePermission{f}}), f.Write})
	}
	config := c.options.Settings.Plugin(p.Name).Config
	for _, h := range asked.HTTP {
		configured, _ := config[h.ConfigKey].(string)
		form.HTTP = append(form.HTTP, httpChoice{h.Name,
			about(manifest.Permissions{HTTP: []manifest.HTTPPermission{h}}), h.URL, h.Credential, configured})
	}
	if e := asked.Exec; e != nil {
		form.Exec = &execChoice{About: about(manifest.Permissions{Exec: e}), Programs: []string{}}
		if e.Programs[0] != manifest.AnyProgram {
			form.Exec.Programs = e.Programs
		}
	}
	form.Machines, form.Machine = c.machines(q)
	return form
}

// machines is how many machines hako runs on, and the name of this one; 0 where it is the only one, or the store does
// not say.
func (c *Console) machines(q *request) (count int, this string) {
	list, err := c.options.Store.Replicas(q.Context())
	if err != nil {
		return 0, "" // the overview says so
	}
	names := map[string]bool{}
	for _, r := range list {
		names[r.Host] = true
		if r.ID == c.options.Store.Replica() {
			this = r.Host
		}
	}
	if len(names) < 2 {
		return 0, ""
	}
	return len(names), this
}

// maxChoices bounds a request with choices, in bytes.
const maxChoices = 256 << 10

// chosen is what a plugin, as it lies there now, gets with what somebody has chosen.
type chosen struct {
	*proposal
	// shown is the version of what the person was shown; empty if that is still to come.
	shown string
	file  Consents
}

// choose reads what somebody has chosen for the plugin that the request is about. It fails if that is another one than
// the person has seen, or cannot get what was chosen.
func (c *Console) choose(q *request) (*chosen, error) {
	var body struct {
		Digest, Version string
		Choices         *grant.Choices
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	p, file, err := c.approvable(q)
	if err != nil {
		return nil, err
	}
	made := c.propose(p, file.Consents(), body.Choices, q)
	switch {
	case body.Digest != p.Digest:
		return nil, made.changed(c, q)
	case made.err != nil:
		return nil, faultChoices(made)
	}
	return &chosen{made, body.Version, file}, nil
}

// review says what the plugin would get with the choices. Nothing is recorded.
func (c *Console) review(q *request) (any, error) {
	now, err := c.choose(q)
	if err != nil {
		return nil, err
	}
	return now.ask(c, q.language), nil
}

// faultChoices says what cannot be chosen, and at which field.
func faultChoices(p *proposal) *fault {
	fields := map[string]manifest.Text{}
	for _, wrong := range grant.ChoiceErrors(p.err) {
		if before := fields[wrong.Field]; before != nil {
			wrong.Text = manifest.Text{"en": before["en"] + "\n" + wrong.Text["en"],
				"ja": before["ja"] + "\n" + wrong.Text["ja"]}
		}
		fields[wrong.Field] = wrong.Text
	}
	if p.unconfined {
		fields["exec.unconfined"] = manifest.Text{"en": p.err.Error(), "ja": "このマシンでは、カーネルでコマンドを制限できません: " +
			p.err.Error()}
	}
	if len(fields) == 0 {
		return &fault{code: codeInvalid, text: said("%v", p.err), remedy: said("%s", p.command())}
	}
	return &fault{code: codeInvalid, fields: fields, text: manifest.Text{
		"en": "Some of what was chosen cannot be given.", "ja": "指定された内容に、許可できないものがあります。",
	}}
}
