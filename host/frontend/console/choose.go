package console

import (
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// chooseJSON is the form of a plugin's permissions: what each asks for, and the current choice.
type chooseJSON struct {
	Digest string        `json:"digest"`
	Files  []filesChoice `json:"files"`
	HTTP   []httpChoice  `json:"http"`
	Exec   *execChoice   `json:"exec,omitempty"`
	Chosen grant.Choices `json:"chosen"`
	// Machines is the number of machines that run hako, if there are several. Machine is the name of the one that looks
	// for folders.
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
	// URL and Credential are requested by the plugin. Configured is the address from the configuration, which cannot
	// be chosen here.
	URL        string `json:"url"`
	Credential string `json:"credential,omitempty"`
	Configured string `json:"configured,omitempty"`
}

type execChoice struct {
	About string `json:"about"`
	// Programs are those that the plugin asks for. Empty means any.
	Programs []string `json:"programs"`
}

// chooses returns the form for a plugin. It is nil if there is nothing to choose or choices cannot be recorded.
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

// machines returns the number of machines that run hako and the name of this one, or 0 if it is the only one or the
// store does not know.
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

// chosen is a plugin with what a person has chosen for it.
type chosen struct {
	*proposal
	// shown is the version that the person has seen, or empty.
	shown string
	file  Consents
}

// choose reads a person's choices for the request's plugin. It fails if the plugin is not the one that the person has
// seen, or if it cannot be granted what was chosen.
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
		return nil, made.conflict(c, q)
	case made.err != nil:
		return nil, faultChoices(made)
	}
	return &chosen{made, body.Version, file}, nil
}

// review shows what the plugin would be granted with the choices. It records nothing.
func (c *Console) review(q *request) (any, error) {
	now, err := c.choose(q)
	if err != nil {
		return nil, err
	}
	return now.ask(c, q.language), nil
}

// faultChoices returns the errors of the choices by field.
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
		"en": "Some of the chosen permissions cannot be granted.", "ja": "指定された内容に、許可できないものがあります。",
	}}
}
