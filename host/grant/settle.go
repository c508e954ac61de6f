package grant

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

// Limits of Choices: elements of a list, and bytes of a note.
const (
	maxChosen = 64
	maxNote   = 500
)

// Choices returns what is settled so far.
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

// Settle puts the choices into the consent. Mounts and HTTP permissions that are not in them stay as they were, and so do commands where
// Exec is nil.
//
// What cannot be chosen is in the error, as one ChoiceError each: a folder that is not there, is no folder, or has another path than the one that
// was written (".." or symbolic links, so that what is shown is what is given); an address that is no base URL, or whose wildcard reaches hosts that
// the plugin does not ask for; a name that nothing asks for; lists that are too long. Folders and addresses that were settled before are not
// looked at again. A mount that becomes writable gets the default quota; one that was keeps its own, or none. After an error the Proposal is not to be used.
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
		text := both("the note is longer than %d bytes", "メモが %d バイトを超えています", maxNote)
		errs = append(errs, wrong("note", text, text["en"]))
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
		return wrongMount(p.Consent.Name, name, text)
	}
	return nil
}

func (p *Proposal) asksToWrite(mount string) bool {
	return slices.ContainsFunc(p.Consent.Asked.Files, func(f manifest.FilePermission) bool { return f.Mount == mount && f.Write })
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
	return wrongHTTP(p.Consent.Name, name, "url", both("%s reaches hosts that the plugin does not ask for, which are those of %s: name one host, or stay within them",
		"%s は、プラグインが求めているホスト (%s) の範囲を超えています。ホストを 1 つ指定するか、その範囲内にしてください", choice.URL, asked.URL))
}

func (p *Proposal) asksHTTP(name string) *manifest.HTTPPermission {
	i := slices.IndexFunc(p.Consent.Asked.HTTP, func(h manifest.HTTPPermission) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Consent.Asked.HTTP[i]
}

// beyondHosts reports whether a base URL stands for several hosts, and some of them are none of those that another stands for.
func beyondHosts(asked, chosen string) bool {
	outer, err := manifest.ParseBaseURL(asked)
	if err != nil {
		return false // a manifest's is valid
	}
	inner, err := manifest.ParseBaseURL(chosen)
	return err == nil && strings.HasPrefix(inner.Host, "*") && !manifest.Covers(outer, inner)
}

func (p *Proposal) settleExec(c *ExecChoice) error {
	e := &p.Consent.Exec
	e.Programs, e.Env, e.Connect, e.Unconfined = named(c.Programs), named(c.Env), canonicalConnects(named(c.Connect)), c.Unconfined
	e.Ports = nil
	errs := []error{}
	for _, list := range []struct {
		field string
		count int
	}{{"programs", len(c.Programs)}, {"env", len(c.Env)}} {
		if list.count > maxChosen {
			errs = append(errs, wrongExec(p.Consent.Name, list.field, both("there are %d: name at most %d", "%d 個あります。%d 個以内にしてください", list.count, maxChosen)))
		}
	}
	return errors.Join(errs...)
}

// named are the elements of a list that are not empty.
func named(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
}
