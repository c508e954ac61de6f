package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/broker/exec/confine"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/server"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Levels of a finding.
const (
	levelOK      = "ok"
	levelWarning = "warning"
	levelError   = "error"
)

// finding is one thing that "hako doctor" has looked at.
type finding struct {
	Level   string `json:"level"`
	Check   string `json:"check"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can enforce, and what is wrong with the configuration",
		Long: `Say what this machine can enforce, and what is wrong with the configuration, each with a remedy. The exit code is 1 if something
does not work; warnings are for a person to weigh. No file is changed.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) doctor(cmd *cobra.Command, asJSON bool) error {
	findings := machine(confine.Check(), os.Geteuid(), processLimit())
	findings = append(findings, a.installation(cmd)...)
	if asJSON {
		if err := a.printJSON(findings); err != nil {
			return err
		}
	}
	failed := false
	for _, f := range findings {
		failed = failed || f.Level == levelError
		if asJSON {
			continue
		}
		printf(a.stdout, "%-8s %s: %s\n", f.Level, f.Check, f.Message)
		if f.Remedy != "" {
			printf(a.stdout, "%-8s -> %s\n", "", f.Remedy)
		}
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// machine says what holds the commands of plugins here.
func machine(s confine.Support, uid int, processLimit string) []finding {
	var findings []finding
	switch {
	case !s.Confines():
		findings = append(findings, finding{levelWarning, "commands",
			"the kernel cannot hold commands of plugins, which therefore run only where you allow them to run unconfined: " + s.Missing(),
			"see docs/exec.md; without plugins that run commands nothing is to be done"})
	case s.Missing() != "":
		findings = append(findings, finding{levelWarning, "commands",
			fmt.Sprintf(
				"the kernel holds commands of plugins, Landlock version %d, but not in every way, and those that may connect to hosts (--connect) not at all: %s",
				s.Landlock,
				s.Missing(),
			),
			"see docs/exec.md; without --connect commands run all the same, without a network"})
	default:
		findings = append(findings, finding{levelOK, "commands",
			fmt.Sprintf(
				"the kernel holds commands of plugins: Landlock version %d, namespaces, a filter for system calls",
				s.Landlock,
			), ""})
	}
	switch {
	case uid == 0 && processLimit == "":
		findings = append(findings, finding{levelWarning, "user",
			"hako runs as root, so nothing bounds the number of processes of a command",
			"run it as a user of its own, or bound its service: TasksMax= in systemd, a limit on pids for a container"})
	case uid == 0:
		findings = append(findings, finding{levelOK, "user",
			"hako runs as root; its control group bounds processes to " + processLimit, ""})
	case uid > 0:
		findings = append(findings, finding{levelOK, "user", fmt.Sprintf("hako runs as user %d, and not as root", uid),
			""})
	}
	return findings
}

// installation looks at the configuration and all that it names.
func (a *app) installation(cmd *cobra.Command) []finding {
	c, err := a.config(cmd)
	if err != nil {
		return []finding{{levelError, "configuration", strings.TrimPrefix(err.Error(), "configuration: "),
			"mend it; hako config shows what is in force"}}
	}
	file := c.File
	if file == "" {
		file = "the built-in demonstration, because there is no " + config.FileName
	}
	findings := []finding{{levelOK, "configuration", file, ""}, policyFile(c)}
	findings = append(findings, frontendFindings(c)...)
	findings = append(findings, secretsFound(cmd.Context(), c)...)
	findings = append(findings, proxyFindings(c, os.LookupEnv)...)
	findings = append(findings, directory("cache", "cache", c.Cache))
	findings = append(findings, a.storeFindings(cmd.Context(), c)...)
	return append(findings, a.pluginFindings(cmd.Context(), c)...)
}

// frontendFindings say what would keep hako serve from opening its frontends.
func frontendFindings(c *config.Config) (findings []finding) {
	for _, err := range []error{server.CheckHTTP(c), server.CheckConsole(c)} {
		if err != nil {
			findings = append(findings, finding{levelError, "configuration",
				strings.TrimPrefix(err.Error(), "configuration: "),
				"mend it; hako config check says whether hako serve would start"})
		}
	}
	if _, err := server.UpstreamSpecs(c); err != nil {
		findings = append(findings, finding{levelError, "upstreams", strings.TrimPrefix(err.Error(), "configuration: "),
			"mend the file that upstreams names"})
	}
	return findings
}

func policyFile(c *config.Config) finding {
	_, err := policy.OpenLive(c.Policy)
	switch {
	case err != nil:
		return finding{levelError, "policy", err.Error(), "mend it: hako policy check"}
	case !isFile(c.Policy):
		return finding{levelOK, "policy", "there is no policy file: " + c.Policy, ""}
	}
	return finding{levelOK, "policy", c.Policy, ""}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// lowDisk is how many bytes a directory should have left: room for the compiled code of some plugins, or for a
// database.
const lowDisk = 256 << 20

// directory looks at one that hako writes to, or at where it would make it. key is what names it in the configuration.
func directory(name, key, path string) finding {
	if path == "" {
		return finding{levelOK, name, "kept in memory", ""}
	}
	there := path
	for {
		if _, err := os.Stat(there); err == nil || filepath.Dir(there) == there {
			break
		}
		there = filepath.Dir(there)
	}
	if err := checkWritable(there); err != nil {
		return finding{levelError, name, fmt.Sprintf("%s cannot be written to: %v", path, err),
			"change its owner or mode, or name another directory: " + key + " in " + config.FileName}
	}
	free, known := freeSpace(there)
	switch {
	case known && free < lowDisk:
		return finding{levelWarning, name, fmt.Sprintf("%s has %d MiB left", path, free>>20),
			"make room: a full disk stops what hako keeps"}
	case known:
		return finding{levelOK, name, fmt.Sprintf("%s, %d MiB free", path, free>>20), ""}
	}
	return finding{levelOK, name, path, ""}
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

// pluginFindings says which plugins are in service, and why others are not.
func (a *app) pluginFindings(ctx context.Context, c *config.Config) []finding {
	findings := []finding{memory(c.MemoryBudget)}
	err := a.withShared(ctx, c, func(s *store.Store) error {
		h, err := a.hostFor(ctx, c, func(o *host.Options) { o.ConsentStore, o.ReadOnly = s, true })
		if err != nil {
			return err
		}
		findings = append(findings, pluginStates(h)...)
		for _, note := range (&view{config: c, plugins: h.Plugins()}).unused() {
			findings = append(findings, finding{levelWarning, "configuration", note,
				"correct the name, or take the setting out"})
		}
		return h.Close()
	})
	if err != nil {
		findings = append(findings, finding{levelError, "plugins", err.Error(), ""})
	}
	return findings
}

func pluginStates(h *host.Host) (findings []finding) {
	active := 0
	for _, p := range h.Plugins() {
		level := levelWarning
		switch p.State {
		case host.Active:
			active++
			findings = append(findings, compilation(h, p)...)
			continue
		case host.Broken, host.Conflict:
			level = levelError
		}
		f := finding{level, "plugin " + p.Title(), string(p.State), p.Reason}
		if p.State == host.Broken {
			f.Message, f.Remedy = "broken: "+p.Reason, "put a working file in its place, or take it away"
		}
		findings = append(findings, f)
	}
	return append(findings, finding{levelOK, "plugins", fmt.Sprintf("%d in service", active), ""})
}

// compilation says why a plugin in service is not compiled.
func compilation(h *host.Host, p host.Status) []finding {
	refusal, err := h.CompileRefusal(p)
	name := "plugin " + p.Title()
	switch {
	case err != nil:
		return []finding{{levelWarning, name, err.Error(), ""}}
	case refusal == nil:
		return nil
	case refusal.Unusable:
		return []finding{{levelError, name, refusal.Problem(), refusal.Remedy()}}
	}
	return []finding{{levelWarning, name, refusal.Problem(), refusal.Remedy()}}
}

// memory compares the budget of plugins with what the machine has.
func memory(budget int64) finding {
	if budget == 0 {
		budget = defaultMemoryBudget
	}
	total, known := totalMemory()
	if known && uint64(budget) > total/4*3 {
		return finding{levelWarning, "memory", fmt.Sprintf("plugins may use %s together, and this machine has %d MiB",
			strictyaml.FormatSize(budget), total>>20),
			"lower memoryBudget in " + config.FileName}
	}
	return finding{levelOK, "memory", "plugins may use " + strictyaml.FormatSize(budget) + " together", ""}
}

// defaultMemoryBudget is the sandbox's.
const defaultMemoryBudget = 2 << 30
