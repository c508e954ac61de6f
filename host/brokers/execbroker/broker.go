// Package execbroker runs commands for plugins: programs of the host, in a sandbox enforced by the kernel.
//
// A Broker belongs to one plugin; Broker.Module is its import module. Before a command starts, its command line is
// parsed and each program in it is checked against rules (package judge). The command then runs in a process that the
// kernel restricts to the granted files and programs (package confine). Each program that it starts is checked again
// with its final arguments. It has a network namespace of its own, in which it reaches only the granted hosts (package
// gateway). docs/exec.md lists what each layer enforces.
package execbroker

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/hako-run/hako/host/brokers/execbroker/gateway"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/outbound"
)

const (
	// maxRunning limits the commands of one plugin that run at once. Further commands wait.
	maxRunning = 8
	// maxHandles limits the commands that one guest call may start.
	maxHandles = 16
)

// Options configures a Broker.
type Options struct {
	// Plugin is the plugin's name, for errors.
	Plugin string
	// Rules returns the operator's rules, which precede the built-in rules of package judge. It is called for every
	// command. Nil means none.
	Rules func() []judge.Rule
	// Environ is the host's environment, "NAME=value". Commands get the granted variables of it.
	Environ []string
	// TempDir is the directory in which each command gets a temporary directory. Empty means os.TempDir.
	TempDir string
	// Limits bound each command. Zero fields mean these values: 10 minutes of CPU time, 2 GiB of memory, 256 processes,
	// 1024 open files and 1 GiB a file.
	Limits confine.Limits
	// Proxy is an upstream proxy (http, https or socks5) for the connections of commands; see gateway.Options. Nil
	// means none.
	Proxy *url.URL
	// Resolver looks up the names of hosts that commands connect to. Nil means net.DefaultResolver.
	Resolver outbound.Resolver
	// Observe, if set, is called once for every command when it has ended or was refused. ObserveConnection is called
	// in the same way for every connection of a command. Both must be safe for concurrent use.
	Observe           func(Observation)
	ObserveConnection func(gateway.Observation)
	// Logger gets commands at debug level, without their arguments. Nil discards them.
	Logger *slog.Logger
}

// defaultLimits are the limits of a command where Options.Limits has none.
var defaultLimits = confine.Limits{CPU: maxCPU, Memory: 2 << 30, Processes: 256, Files: 1024, FileSize: 1 << 30}

// Broker runs one plugin's commands. It is safe for concurrent use.
type Broker struct {
	plugin  string
	rules   func() []judge.Rule
	temp    string
	observe func(Observation)
	log     *slog.Logger

	roots roots
	// gateway connects commands with the granted hosts. If it is nil, they have no network, or the host's.
	gateway *gateway.Gateway
	// base is the part of confine.Spec that all commands share.
	base    confine.Spec
	running chan struct{}
}

// New returns a Broker for a grant. Commands may use the files of mounts, except mounts with deny globs, because the
// kernel cannot hide a part of a directory.
//
// It fails if this machine cannot confine commands and the grant does not allow unconfined ones, if none of the granted
// programs exists, if a mount is missing, or if a program is in a mount that commands may write to.
func New(g *grant.Exec, mounts []grant.Mount, options Options) (*Broker, error) {
	b := &Broker{
		plugin: options.Plugin, rules: options.Rules, temp: options.TempDir,
		observe: options.Observe, log: options.Logger,
		running: make(chan struct{}, maxRunning),
	}
	if b.rules == nil {
		b.rules = func() []judge.Rule { return nil }
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	support := confine.Check()
	confines := support.Confines() && (len(g.Connect) == 0 || support.ConfinesNetwork())
	if !confines && !g.Unconfined {
		return nil, Unconfinable(b.plugin, g)
	}
	installed, missing := resolvePrograms(g.Programs)
	if len(installed.programs) == 0 {
		return nil, fmt.Errorf("none of the granted programs is installed: %s", strings.Join(missing, ", "))
	}
	if len(missing) > 0 {
		b.log.Warn("granted programs are not installed", "plugin", b.plugin, "programs", missing)
	}
	var err error
	if b.roots, err = newRoots(mounts); err != nil {
		return nil, err
	}
	for _, program := range installed.programs {
		if at := b.roots.writableMount(program.Path); at != "" {
			return nil, fmt.Errorf("%s is in the mount %s, where commands could replace it: grant a program outside "+
				"of it, or mount the directory read-only", program.Path, at)
		}
	}
	b.base = confine.Spec{
		Env:      environment(g.Env, options.Environ),
		Programs: installed.programs,
		Execute:  installed.execute,
		Read:     append(systemPaths(len(g.Connect) > 0), installed.read...),
		Limits:   limits(options.Limits),
		Loose:    !confines,
	}
	b.base.Read = append(b.base.Read, b.roots.readable()...)
	b.base.Write = b.roots.writable()
	if err := b.connect(g.Connect, support, &options); err != nil {
		return nil, err
	}
	return b, nil
}

// connect creates the gateway to the granted hosts.
func (b *Broker) connect(hosts []string, support confine.Support, options *Options) error {
	if len(hosts) == 0 {
		return nil
	}
	made, err := gateway.New(hosts, gateway.Options{
		Plugin: b.plugin, Proxy: options.Proxy, Resolver: options.Resolver,
		Observe: options.ObserveConnection, Logger: options.Logger,
	})
	if err != nil {
		return err
	}
	b.base.Listen = made.Listen()
	if !support.Namespaces { // unconfined commands use the host's network and name servers
		b.base.Read = append(b.base.Read, existing("/etc/resolv.conf")...)
		return nil
	}
	b.gateway = made
	b.base.Env = replaceVariables(b.base.Env, made.Environ())
	return nil
}

// Unconfinable returns an error if this machine cannot restrict commands to what g grants.
func Unconfinable(plugin string, g *grant.Exec) error {
	return unconfinable(confine.Check(), plugin, g)
}

func unconfinable(support confine.Support, plugin string, g *grant.Exec) error {
	switch {
	case !support.Confines():
		return fmt.Errorf("this machine cannot confine commands: %s. To run them anyway, checked by the rules "+
			"alone: hako plugin approve %s --unconfined",
			support.Missing(), plugin)
	case len(g.Connect) > 0 && !support.ConfinesNetwork():
		return fmt.Errorf("this machine cannot restrict commands to the granted hosts (%[1]s): %[2]s. To run them "+
			"without a network: hako plugin approve %[3]s --connect ''. "+
			"To run them on the host's network, where they reach every host: hako plugin approve %[3]s --unconfined",
			strings.Join(g.Connect, ", "), support.Missing(), plugin)
	}
	return nil
}

// Idle returns a Broker that refuses every command, for a guest that is only asked for its tools.
func Idle() *Broker {
	return &Broker{rules: func() []judge.Rule { return nil }, temp: os.TempDir(), log: slog.New(slog.DiscardHandler),
		running: make(chan struct{}, 1)}
}

// limits returns l with the defaults filled in.
func limits(l confine.Limits) confine.Limits {
	for _, field := range []struct{ have, want *uint64 }{
		{&l.Memory, &defaultLimits.Memory}, {&l.Processes, &defaultLimits.Processes}, {&l.Files, &defaultLimits.Files},
		{&l.FileSize, &defaultLimits.FileSize},
	} {
		if *field.have == 0 {
			*field.have = *field.want
		}
	}
	if l.CPU == 0 {
		l.CPU = defaultLimits.CPU
	}
	return l
}
