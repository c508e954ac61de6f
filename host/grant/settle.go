package grant

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

// Limits of Choices: elements of a list and bytes of a note.
const (
	maxChosen = 64
	maxNote   = 500
)

// Choices returns the current settings.
func (p *Proposal) Choices() Choices {
	c := Choices{Mounts: map[string]MountChoice{}, HTTP: map[string]HTTPMapping{}, Note: p.Consent.Note}
	for _, asked := range p.Consent.Asked.Files {
		if mount, ok := p.Consent.Mounts[asked.Mount]; ok {
			c.Mounts[asked.Mount] = MountChoice{p.Consent.folder(mount.Path), !mount.Write}
		} else {
			c.Mounts[asked.Mount] = MountChoice{}
		}
	}
	for _, asked := range p.Consent.Asked.HTTP {
		c.HTTP[asked.Name] = p.Consent.HTTP[asked.Name]
	}
	if p.Consent.Asked.Exec != nil {
		e := p.Consent.Exec
		c.Exec = &ExecChoice{slices.Clone(e.Programs), slices.Clone(e.Env), slices.Clone(e.Connect), e.Unconfined}
	}
	return c
}

// Settle applies choices to the consent. Mounts and HTTP permissions that are not in them stay as they were. So do
// commands if c.Exec is nil.
//
// The error joins a ChoiceError for each invalid choice: a folder that does not exist, is no folder, or whose path has
// ".." or symbolic links (the path that is shown must be the one that is granted); an address that is no base URL, or
// whose wildcard matches hosts that the plugin does not ask for; a name that the plugin does not ask for; a list that
// is too long. Unchanged folders and addresses are not checked again. A mount that becomes writable gets the default
// quota; one that was writable keeps its quota, or none. After an error the Proposal must not be used.
func (p *Proposal) Settle(c Choices) error {
	var errs []error
	for _, name := range sortedKeys(c.Mounts) {
		errs = append(errs, p.settleMount(name, c.Mounts[name]))
	}
	for _, name := range sortedKeys(c.HTTP) {
		errs = append(errs, p.settleHTTP(name, c.HTTP[name]))
	}
	if c.Exec != nil {
		errs = append(errs, p.settleExec(c.Exec))
	}
	if p.Consent.Note = c.Note; len(c.Note) > maxNote {
		text := bilingual("the note is longer than %d bytes", "メモが %d バイトを超えています", maxNote)
		errs = append(errs, choiceError("note", text, text["en"]))
	}
	return errors.Join(append(errs, p.Consent.checkMounts(), p.Consent.checkHTTP(), p.Consent.checkExec())...)
}

func (p *Proposal) settleMount(name string, choice MountChoice) error {
	before, had := p.Consent.Mounts[name]
	if choice.Dir == "" {
		delete(p.Consent.Mounts, name)
		return nil
	}
	mount := before
	mount.Name, mount.Write = name, !choice.ReadOnly && p.asksToWrite(name)
	if mount.Write && !before.Write && mount.Quota == 0 {
		mount.Quota = cmp.Or(p.Quota, DefaultMountQuota)
	}
	same := had && p.Consent.folder(before.Path) == choice.Dir
	if !same {
		mount.Path = filepath.Clean(choice.Dir)
	}
	p.Consent.Mounts[name] = mount
	if same {
		return nil
	}
	if text := checkDir(choice.Dir); text != nil {
		return mountError(p.Consent.Name, name, text)
	}
	return nil
}

func (p *Proposal) asksToWrite(mount string) bool {
	return slices.ContainsFunc(p.Consent.Asked.Files,
		func(f manifest.FilePermission) bool { return f.Mount == mount && f.Write })
}

func (p *Proposal) settleHTTP(name string, choice HTTPMapping) error {
	before := p.Consent.HTTP[name]
	p.Consent.HTTP[name] = choice
	if choice == (HTTPMapping{}) && p.asksHTTP(name) != nil {
		delete(p.Consent.HTTP, name)
	}
	asked := p.asksHTTP(name)
	if asked == nil || choice.URL == before.URL || !beyondHosts(asked.URL, choice.URL) {
		return nil
	}
	return httpError(p.Consent.Name, name, "url", bilingual("%s reaches hosts that the plugin does not ask for, "+
		"which are those of %s: name one host, or stay within them",
		"%s は、プラグインが求めているホスト (%s) の範囲を超えています。ホストを 1 つ指定するか、その範囲内にしてください", choice.URL, asked.URL))
}

func (p *Proposal) asksHTTP(name string) *manifest.HTTPPermission {
	i := slices.IndexFunc(p.Consent.Asked.HTTP, func(h manifest.HTTPPermission) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Consent.Asked.HTTP[i]
}

// beyondHosts reports whether chosen has a wildcard host that matches hosts which asked does not.
func beyondHosts(asked, chosen string) bool {
	outer, err := manifest.ParseBaseURL(asked)
	if err != nil {
		return false // the URL of a manifest is valid
	}
	inner, err := manifest.ParseBaseURL(chosen)
	return err == nil && strings.HasPrefix(inner.Host, "*") && !manifest.Covers(outer, inner)
}

func (p *Proposal) settleExec(c *ExecChoice) error {
	e := &p.Consent.Exec
	e.Programs, e.Env, e.Connect, e.Unconfined = named(c.Programs), named(c.Env),
		canonicalConnects(named(c.Connect)), c.Unconfined
	e.Ports = nil
	errs := []error{}
	for _, list := range []struct {
		field string
		count int
	}{{"programs", len(c.Programs)}, {"env", len(c.Env)}} {
		if list.count > maxChosen {
			errs = append(errs, execError(p.Consent.Name, list.field, bilingual("there are %d: name at most %d",
				"%d 個あります。%d 個以内にしてください", list.count, maxChosen)))
		}
	}
	return errors.Join(errs...)
}

// named returns the elements of a list that are not empty.
func named(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
}
