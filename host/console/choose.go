package console

import (
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// chooseJSON is what there is to choose about a plugin's permissions, as a form: what each asks for, in plain words, and what is settled so far.
type chooseJSON struct {
	Digest string        `json:"digest"`
	Files  []filesChoice `json:"files"`
	HTTP   []httpChoice  `json:"http"`
	Exec   *execChoice   `json:"exec,omitempty"`
	Chosen grant.Choices `json:"chosen"`
}

type filesChoice struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Write bool   `json:"write"`
}

type httpChoice struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// URL and Credential are what the plugin asks for. Configured is the address that is set for it in the configuration, and cannot be chosen here.
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
func (c *Console) chooses(p *host.Status, made *proposal, language string) *chooseJSON {
	asked := made.Consent.Asked
	if c.options.Consents == nil || len(asked.Files)+len(asked.HTTP) == 0 && asked.Exec == nil {
		return nil
	}
	form := &chooseJSON{Digest: p.Digest, Files: []filesChoice{}, HTTP: []httpChoice{}, Chosen: made.Choices()}
	about := func(one manifest.Permissions) string { return grant.Explain(one, language)[0] }
	for _, f := range asked.Files {
		form.Files = append(form.Files, filesChoice{f.Mount, about(manifest.Permissions{Files: []manifest.FilePermission{f}}), f.Write})
	}
	config := c.settings(p.Name).Config
	for _, h := range asked.HTTP {
		configured, _ := config[h.ConfigKey].(string)
		form.HTTP = append(form.HTTP, httpChoice{h.Name, about(manifest.Permissions{HTTP: []manifest.HTTPPermission{h}}), h.URL, h.Credential, configured})
	}
	if e := asked.Exec; e != nil {
		form.Exec = &execChoice{About: about(manifest.Permissions{Exec: e}), Programs: []string{}}
		if e.Programs[0] != manifest.AnyProgram {
			form.Exec.Programs = e.Programs
		}
	}
	return form
}

// maxChoices bounds a request with choices, in bytes.
const maxChoices = 256 << 10

// review says what the plugin would get with the choices. Nothing is recorded.
func (c *Console) review(q *request) (any, error) {
	var body struct {
		Digest  string
		Choices *grant.Choices
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
		return nil, faultChanged
	case made.err != nil:
		return nil, faultChoices(made)
	}
	return made.ask(c, q.language), nil
}

// faultChoices says what cannot be chosen, and at which field.
func faultChoices(p *proposal) *fault {
	fields := map[string]manifest.Text{}
	for _, wrong := range grant.ChoiceErrors(p.err) {
		if before := fields[wrong.Field]; before != nil {
			wrong.Text = manifest.Text{"en": before["en"] + "\n" + wrong.Text["en"], "ja": before["ja"] + "\n" + wrong.Text["ja"]}
		}
		fields[wrong.Field] = wrong.Text
	}
	if p.unconfined {
		fields["exec.unconfined"] = manifest.Text{"en": p.err.Error(), "ja": "このマシンでは、カーネルでコマンドを制限できません: " + p.err.Error()}
	}
	if len(fields) == 0 {
		return &fault{code: codeInvalid, text: said("%v", p.err), remedy: said("%s", p.command())}
	}
	return &fault{code: codeInvalid, fields: fields, text: manifest.Text{
		"en": "Some of what was chosen cannot be given.", "ja": "指定された内容に、許可できないものがあります。",
	}}
}
