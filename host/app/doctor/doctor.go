// Package doctor examines what this machine can enforce and what is wrong with a configuration. It changes no file and
// no database.
//
// Machine and Configuration return a Finding for each thing that they examine, with a remedy where there is a problem.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Levels of a finding.
const (
	LevelOK      = "ok"
	LevelWarning = "warning"
	LevelError   = "error"
)

// Finding is the result of one check.
type Finding struct {
	Level   string `json:"level"`
	Check   string `json:"check"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// IsError reports whether something does not work.
func (f Finding) IsError() bool { return f.Level == LevelError }

// Machine examines how this machine confines the commands of plugins.
func Machine() []Finding { return machine(confine.Check(), os.Geteuid(), processLimit()) }

func machine(s confine.Support, uid int, processLimit string) []Finding {
	var findings []Finding
	switch {
	case !s.Confines():
		findings = append(findings, Finding{LevelWarning, "commands",
			"the kernel cannot confine commands of plugins, which therefore run only where you allow them to run " +
				"unconfined: " + s.Missing(),
			"see docs/exec.md; nothing is needed without plugins that run commands"})
	case s.Missing() != "":
		findings = append(findings, Finding{LevelWarning, "commands",
			fmt.Sprintf(
				"the kernel confines commands of plugins, Landlock version %d, but not in every way, and those that "+
					"may connect to hosts (--connect) not at all: %s",
				s.Landlock,
				s.Missing(),
			),
			"see docs/exec.md; without --connect commands run all the same, without a network"})
	default:
		findings = append(findings, Finding{LevelOK, "commands",
			fmt.Sprintf(
				"the kernel confines commands of plugins: Landlock version %d, namespaces, a filter for system calls",
				s.Landlock,
			), ""})
	}
	switch {
	case uid == 0 && processLimit == "":
		findings = append(findings, Finding{LevelWarning, "user",
			"hako runs as root, so nothing bounds the number of processes of a command",
			"run it as a user of its own, or bound its service: TasksMax= in systemd, a limit on pids for a container"})
	case uid == 0:
		findings = append(findings, Finding{LevelOK, "user",
			"hako runs as root; its control group bounds processes to " + processLimit, ""})
	case uid > 0:
		findings = append(findings, Finding{LevelOK, "user", fmt.Sprintf("hako runs as user %d, and not as root", uid),
			""})
	}
	return findings
}

// Configuration examines a configuration and everything that it names. shipped are the plugins that come with the
// program.
func Configuration(ctx context.Context, c *config.Config, shipped []shipped.Plugin) []Finding {
	file := c.File
	if file == "" {
		file = "the built-in demonstration, because there is no " + config.FileName
	}
	findings := []Finding{{LevelOK, "configuration", file, ""}, policyFile(c)}
	findings = append(findings, frontends(c)...)
	findings = append(findings, secrets(ctx, c)...)
	findings = append(findings, proxy(c, os.LookupEnv)...)
	findings = append(findings, directory("cache", "cache", c.Cache), memory(c.MemoryBudget))
	if !store.IsURL(c.Store) {
		findings = append(findings, directory("store", "store", c.StateDir()))
		return append(findings, plugins(ctx, c, shipped, nil)...)
	}
	findings = append(findings, directory("store", "postgres.dir", c.StateDir()))
	s, err := c.InspectStore(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return append(
			findings,
			Finding{LevelError, "database", err.Error(), "docs/store.md describes what a database needs"},
		)
	}
	defer func() { _ = s.Close() }() // nothing was written
	findings = append(findings, database(ctx, c, s)...)
	return append(findings, plugins(ctx, c, shipped, s)...)
}

// Unusable is the finding of a configuration that cannot be read.
func Unusable(err error) Finding {
	return Finding{LevelError, "configuration", strings.TrimPrefix(err.Error(), "configuration: "),
		"correct it; hako config shows the values in force"}
}

// frontends finds what keeps hako serve from opening its frontends.
func frontends(c *config.Config) (findings []Finding) {
	for _, err := range []error{server.CheckHTTP(c), server.CheckConsole(c)} {
		if err != nil {
			findings = append(findings, Finding{LevelError, "configuration",
				strings.TrimPrefix(err.Error(), "configuration: "),
				"correct it; hako config check shows whether hako serve would start"})
		}
	}
	if err := server.CheckUpstreams(c); err != nil {
		findings = append(findings, Finding{LevelError, "upstreams", strings.TrimPrefix(err.Error(), "configuration: "),
			"correct the file that upstreams names"})
	}
	return findings
}

func policyFile(c *config.Config) Finding {
	_, err := policy.OpenLive(c.Policy)
	switch {
	case err != nil:
		return Finding{LevelError, "policy", err.Error(), "correct it: hako policy check"}
	case !isFile(c.Policy):
		return Finding{LevelOK, "policy", "there is no policy file: " + c.Policy, ""}
	}
	return Finding{LevelOK, "policy", c.Policy, ""}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// lowDisk is the free space that a directory should have, in bytes: room for the compiled code of some plugins, or
// for a database.
const lowDisk = 256 << 20

// directory examines a directory that hako writes to, or the place where it would create it. key is its configuration
// key.
func directory(name, key, path string) Finding {
	if path == "" {
		return Finding{LevelOK, name, "kept in memory", ""}
	}
	there := path
	for {
		if _, err := os.Stat(there); err == nil || filepath.Dir(there) == there {
			break
		}
		there = filepath.Dir(there)
	}
	if err := checkWritable(there); err != nil {
		return Finding{LevelError, name, fmt.Sprintf("%s cannot be written to: %v", path, err),
			"change its owner or mode, or name another directory: " + key + " in " + config.FileName}
	}
	free, known := freeSpace(there)
	switch {
	case known && free < lowDisk:
		return Finding{LevelWarning, name, fmt.Sprintf("%s has %d MiB left", path, free>>20),
			"free disk space: hako cannot store anything on a full disk"}
	case known:
		return Finding{LevelOK, name, fmt.Sprintf("%s, %d MiB free", path, free>>20), ""}
	}
	return Finding{LevelOK, name, path, ""}
}

// checkWritable returns why this process cannot make files in a folder, without making one.
func checkWritable(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", folder)
	}
	return checkAccess(folder)
}

// plugins lists which plugins are in service, and why others are not. s holds the consents if replicas share them.
func plugins(ctx context.Context, c *config.Config, shipped []shipped.Plugin, s *store.Store) []Finding {
	h, err := server.NewHost(ctx, c, shipped, slog.New(slog.DiscardHandler), func(o *host.Options) {
		o.ConsentStore, o.ReadOnly = s, true
	})
	if err != nil {
		return []Finding{{LevelError, "plugins", err.Error(), ""}}
	}
	findings := append(pluginStates(h), toolsets(c.Toolsets, h.Catalog().View())...)
	for _, note := range UnusedSettings(c, h.Plugins()) {
		findings = append(findings, Finding{LevelWarning, "configuration", note,
			"correct the name, or remove the setting"})
	}
	if err := h.Close(); err != nil {
		findings = append(findings, Finding{LevelError, "plugins", err.Error(), ""})
	}
	return findings
}

func pluginStates(h *host.Host) (findings []Finding) {
	active := 0
	for _, p := range h.Plugins() {
		level := LevelWarning
		switch p.State {
		case host.Active:
			active++
			if p.Reason != "" {
				findings = append(findings, Finding{LevelWarning, "plugin " + p.Title(), p.Reason,
					"hako plugin inspect " + p.Title() + " shows what it asks for and may do"})
			}
			findings = append(findings, compilation(h, p)...)
			continue
		case host.Revoked:
			findings = append(findings, Finding{LevelOK, "plugin " + p.Title(), p.Because.Cause.In("en"), ""})
			continue
		case host.Broken, host.Conflict:
			level = LevelError
		}
		f := Finding{level, "plugin " + p.Title(), string(p.State), p.Reason}
		if because := p.Because; because.Remedy != nil {
			f.Message += ": " + because.Cause.In("en")
			f.Remedy = cmp.Or(because.Command, because.Remedy.In("en"))
		}
		if p.State == host.Broken {
			f.Message, f.Remedy = "broken: "+p.Reason, "replace the file with a valid one, or remove it"
		}
		findings = append(findings, f)
	}
	return append(findings, Finding{LevelOK, "plugins", fmt.Sprintf("%d in service", active), ""})
}

// toolsets finds what in the sets has no effect on the plugins' tools.
func toolsets(c *toolset.Config, offered *catalog.View) (findings []Finding) {
	for _, name := range c.Names() {
		for _, problem := range c.Set(name).Apply(offered).Problems {
			findings = append(findings, Finding{LevelWarning, "toolset " + name, problem,
				"correct the set, unless it means an upstream server, whose tools are not looked at here"})
		}
	}
	return findings
}

// compilation explains why a plugin in service is not compiled.
func compilation(h *host.Host, p host.Status) []Finding {
	refusal, err := h.CompileRefusal(p)
	name := "plugin " + p.Title()
	switch {
	case err != nil:
		return []Finding{{LevelWarning, name, err.Error(), ""}}
	case refusal == nil:
		return nil
	case refusal.Unusable:
		return []Finding{{LevelError, name, refusal.Problem(), refusal.Remedy()}}
	}
	return []Finding{{LevelWarning, name, refusal.Problem(), refusal.Remedy()}}
}

// memory compares the budget of plugins with what the machine has.
func memory(budget int64) Finding {
	if budget == 0 {
		budget = defaultMemoryBudget
	}
	total, known := totalMemory()
	if known && uint64(budget) > total/4*3 {
		return Finding{LevelWarning, "memory", fmt.Sprintf("plugins may use %s together, and this machine has %d MiB",
			strictyaml.FormatSize(budget), total>>20),
			"lower memoryBudget in " + config.FileName}
	}
	return Finding{LevelOK, "memory", "plugins may use " + strictyaml.FormatSize(budget) + " together", ""}
}

// defaultMemoryBudget is the sandbox's.
const defaultMemoryBudget = 2 << 30
