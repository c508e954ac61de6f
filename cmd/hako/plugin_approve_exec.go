package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host/grant"
)

// execFlags are the flags of "plugin approve" for commands.
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
	flags.StringArrayVar(&f.connect, "connect", nil, "HOST:PORT that commands may connect to, *.DOMAIN:PORT or *:PORT; "+
		"with :private after it also at private addresses; \"\" for no network")
	flags.StringArrayVar(&f.ports, "port", nil, "")
	_ = flags.MarkHidden("port") // the flag is there
	flags.BoolVar(&f.unconfined, "unconfined", false,
		"run commands also where the kernel cannot hold them to their folders")
}

// choose puts the flags into the choices. What none of them names stays as it was.
func (f *execFlags) choose(c *grant.Choices) error {
	if len(f.ports) > 0 {
		return fmt.Errorf("--port %[1]s: ports of any host are not granted any more: name the hosts: --connect HOST:%[1]s",
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
