package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// approveFlags are the flags of "hako plugin approve" and "hako dev plugin". With them an operator chooses what a plugin
// gets: mounts, addresses, credentials, programs and hosts.
type approveFlags struct {
	// mounts are the values of --mount; see parseMountFlag.
	mounts                     []string
	http, private, credentials []string
	exec                       execFlags
	note                       string
	yes                        bool
	// trivial approves a new plugin that asks for nothing without a question.
	trivial bool
}

// add adds the flags to a command's.
func (f *approveFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.mounts, "mount", nil,
		"NAME=DIR[:ro], the folder for a mount that the plugin asks for")
	flags.StringArrayVar(&f.http, "http", nil,
		"NAME=URL, another address for an HTTP permission: its requests go there")
	flags.StringArrayVar(&f.private, "private", nil,
		"NAME, an HTTP permission that may reach private addresses too")
	flags.StringArrayVar(&f.credentials, "credential", nil,
		"NAME=CREDENTIAL, another of your credentials for an HTTP permission")
	f.exec.add(flags)
	flags.StringVar(&f.note, "note", "", "a note for those who read the consents file")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
}

// propose returns the consent to a plugin that the flags describe, and what the plugin would get by it. file has the
// consents until now. Folders in the flags are relative to base.
func (f *approveFlags) propose(file *grant.File, c *config.Config, roots grant.Roots, p *host.Status, base string) (
	*grant.Proposal, grant.Grants, error) {
	proposal := grant.Propose(file.Consents(), p.Manifest, p.Digest, audit.ProcessUser())
	proposal.Quota, proposal.Roots = c.MountQuota, roots
	chosen := proposal.Choices()
	if err := f.choose(&chosen, base); err != nil {
		return nil, grant.Grants{}, err
	}
	if err := proposal.Settle(chosen); err != nil {
		if m := p.Manifest; len(grant.ChoiceErrors(err)) > 0 {
			err = fmt.Errorf("%w\nFor example: %s", err, grant.ApproveCommand(m.Name, m.Permissions, proposal.Before))
		}
		return nil, grant.Grants{}, errors.Join(checkSettings(c, p.Manifest), err)
	}
	grants, err := proposal.Grants(c.Plugin[p.Name].Config)
	if err == nil {
		err = server.CheckExec(p.Name, grants.Exec)
	}
	if err != nil {
		return nil, grant.Grants{}, errors.Join(checkSettings(c, p.Manifest), err)
	}
	for _, text := range f.mounts {
		name, dir, _, _ := parseMountFlag(text) // choose has parsed it
		relativeTo := ""
		if !filepath.IsAbs(dir) {
			relativeTo = c.Consents
		}
		proposal.Consent.SetFolder(name, chosen.Mounts[name].Dir, relativeTo)
	}
	return proposal, grants, nil
}

// checkSettings returns what the configuration of a plugin lacks, so that an approval that fails names that too and not
// only the next one.
func checkSettings(c *config.Config, m *manifest.Manifest) error {
	settings := map[string]any{}
	for _, p := range m.Permissions.HTTP { // the approval may choose their addresses
		if p.ConfigKey != "" {
			settings[p.ConfigKey] = p.URL
		}
	}
	maps.Copy(settings, c.Plugin[m.Name].Config)
	if _, err := m.Configure(settings); err != nil {
		return fmt.Errorf("plugin.%s.config in hako.yaml: %w", m.Name, err)
	}
	return nil
}

// approves reports whether the flags approve a proposal without a question.
func (f *approveFlags) approves(p *grant.Proposal) bool {
	return f.yes || f.trivial && p.Before == nil && !grant.Asks(p.Manifest.Permissions)
}

// choose puts the flags into the choices. What none of them names stays as it was. Folders are relative to base.
func (f *approveFlags) choose(c *grant.Choices, base string) error {
	c.Note = cmp.Or(f.note, c.Note)
	for _, text := range f.mounts {
		name, dir, readOnly, err := parseMountFlag(text)
		if err != nil {
			return err
		}
		path, err := flagFolder(base, dir)
		if err != nil {
			return fmt.Errorf("--mount %s: %w", name, err)
		}
		c.Mounts[name] = grant.MountChoice{Dir: path, ReadOnly: readOnly}
	}
	for _, text := range f.http {
		name, url, ok := strings.Cut(text, "=")
		if !ok || url == "" {
			return fmt.Errorf("--http %q: write it as NAME=URL", text)
		}
		mapping := c.HTTP[name]
		mapping.URL = url
		c.HTTP[name] = mapping
	}
	for _, name := range f.private {
		mapping := c.HTTP[name]
		mapping.Private = true
		c.HTTP[name] = mapping
	}
	for _, text := range f.credentials {
		name, credential, ok := strings.Cut(text, "=")
		if !ok || credential == "" {
			return fmt.Errorf("--credential %q: write it as NAME=CREDENTIAL", text)
		}
		mapping := c.HTTP[name]
		mapping.Credential = credential
		c.HTTP[name] = mapping
	}
	return f.exec.choose(c)
}

// parseMountFlag parses the value of a flag --mount.
func parseMountFlag(text string) (name, dir string, readOnly bool, err error) {
	name, dir, ok := strings.Cut(text, "=")
	if !ok || dir == "" {
		return "", "", false, fmt.Errorf("--mount %q: write it as NAME=DIR, or NAME=DIR:ro to allow reading only", text)
	}
	dir, readOnly = strings.CutSuffix(dir, ":ro")
	return name, dir, readOnly, nil
}

// flagFolder returns the absolute path of a folder of the command line. Symbolic links are resolved, so that the approval
// covers exactly the folder that is shown.
func flagFolder(base, dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	return path, nil // Settle says what is wrong with it
}

// execFlags are the flags for commands.
type execFlags struct {
	programs, env, connect []string
	// ports is the flag of older versions, which is refused.
	ports      []string
	unconfined bool
	flags      *pflag.FlagSet
}

func (f *execFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringArrayVar(&f.programs, "program", nil,
		`a program that the plugin may run, instead of those that it asks for or had; "*" for all that are installed`)
	flags.StringArrayVar(&f.env, "env", nil, "NAME, a variable of hako's environment that commands get; \"\" for none")
	flags.StringArrayVar(&f.connect, "connect", nil,
		"HOST:PORT that commands may connect to, *.DOMAIN:PORT or *:PORT; "+
			"with :private after it also at private addresses; \"\" for no network")
	flags.StringArrayVar(&f.ports, "port", nil, "")
	_ = flags.MarkHidden("port") // the flag is there
	flags.BoolVar(&f.unconfined, "unconfined", false,
		"run commands also where the kernel cannot confine them to their folders")
}

// choose puts the flags into the choices. What none of them names stays as it was.
func (f *execFlags) choose(c *grant.Choices) error {
	if len(f.ports) > 0 {
		return fmt.Errorf(
			"--port %[1]s: ports of any host are not granted any more: name the hosts: --connect HOST:%[1]s",
			cmp.Or(f.ports[0], "PORT"))
	}
	if len(f.programs)+len(f.env)+len(f.connect) == 0 && !f.flags.Changed("unconfined") {
		return nil
	}
	if c.Exec == nil {
		c.Exec = &grant.ExecChoice{}
	}
	for _, list := range []struct{ flag, choice *[]string }{
		{&f.programs, &c.Exec.Programs}, {&f.env, &c.Exec.Env}, {&f.connect, &c.Exec.Connect},
	} {
		if len(*list.flag) > 0 {
			*list.choice = *list.flag
		}
	}
	if f.flags.Changed("unconfined") {
		c.Exec.Unconfined = f.unconfined
	}
	return nil
}
