package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/internal/strictyaml"
)

// app is one run of the program.
type app struct {
	stdin io.Reader
	// stdout and stderr are screens as soon as run has begun; pipe is standard output as it is.
	stdout, stderr, pipe io.Writer

	// person reports whether somebody sits at standard input. Nil looks whether it is a terminal.
	person *bool

	// signals are Ctrl-C and orders to stop, for what takes them itself. Nil means the process's.
	signals <-chan os.Signal

	// hangups are orders to read the configuration again. Nil means the process's.
	hangups <-chan os.Signal

	// exit ends the process. Nil means os.Exit.
	exit func(code int)

	// browse opens a page in a browser. Nil means the system's.
	browse func(url string) error

	// dir and file are the flags --directory and --config.
	dir, file string

	// asJSON is the flag --json of the command; see withJSON.
	asJSON bool
}

// command returns the root command with all others below it.
func (a *app) command() *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "hako",
		Short: "Offer sandboxed Wasm tools to MCP clients",
		Long: `hako runs untrusted tools. Each one is a Wasm plugin in a sandbox of its own, and may do only what you
allowed.

Start with:  hako serve        and point an MCP client at the URL it prints
        or:  hako tools        to list the tools
        or:  hako plugin new   to write a tool of your own`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkDirectory() },
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return a.printVersion()
			}
			return group(cmd, args)
		},
	}
	root.Flags().BoolVarP(&version, "version", "v", false, "version for hako") // cobra's own comes with text/template
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		printf(a.stdout, "%s",
			terminal.Help(a.stdout, strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short))+"\n\n"+cmd.UsageString()))
	})
	flags := root.PersistentFlags()
	flags.StringVarP(&a.dir, "directory", "C", "", "work in this directory instead of the current one")
	flags.StringVar(&a.file, "config", "",
		"configuration file (default ./hako.yaml if it exists, else a built-in demonstration)")
	flags.StringArray("plugins", nil, "folder with plugins; may be given several times")
	config.Flag(flags, "plugins", "plugins")
	flags.StringArray("allow-path", nil,
		"additional directory for the file tools besides the workspace; may be given several times")
	config.Flag(flags, "allow-path", "allowPaths")
	flags.String("log-level", "info", "debug, info, warn or error (default info for serve; for other commands warn, and info for what "+
		"plugins log)")
	flags.Lookup("log-level").DefValue = "" // which help would show
	config.Flag(flags, "log-level", "log.level")
	flags.String("toolset", "", "offer only this toolset at the terminal and over stdio")
	config.Flag(flags, "toolset", "toolset")
	root.AddCommand(
		a.serveCommand(), a.chatCommand(), a.callCommand(), a.readCommand(), a.promptCommand(), a.toolsCommand(),
		a.upstreamsCommand(), a.pluginCommand(), a.configCommand(), a.mcpConfigCommand(),
		a.tokenCommand(), a.connectCommand(), a.secretsCommand(), a.policyCommand(), a.approvalsCommand(),
		a.slackCommand(), a.agentCommand(), a.auditCommand(), a.consoleCommand(), a.doctorCommand(), a.backupCommand(),
		a.restoreCommand(), a.devCommand(), a.schemaCommand(), a.versionCommand(),
	)
	return root
}

// checkDirectory holds that --directory is there, so that a misspelt one is not made.
func (a *app) checkDirectory() error {
	if info, err := os.Stat(a.path("")); a.dir != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--directory %s is not a directory: create it, or name another", a.dir)
	}
	return nil
}

// flagError adds the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := strictyaml.Nearest(unknown.GetSpecifiedName(), known); near != "" {
			err = fmt.Errorf("%w: did you mean --%s?", err, near)
		}
	}
	return usageError(cmd, err)
}

// usageError adds to an error the command that prints help.
func usageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nSee: %s --help", err, cmd.CommandPath())
}

// arguments checks the number of arguments. The error lists the expected ones.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		_, names, _ := strings.Cut(cmd.Use, " ")
		if names == "" {
			return usageError(cmd, fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args))
		}
		return usageError(cmd, fmt.Errorf("%s takes %s, got %d arguments", cmd.CommandPath(), names, len(args)))
	}
}

// groupCommand is a command that is only a name for those below it.
func groupCommand(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: group}
	cmd.AddCommand(below...)
	return cmd
}

// group is the run function of a command that is only a name for those below it.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var known []string
	for _, sub := range cmd.Commands() {
		known = append(known, sub.Name())
	}
	return usageError(cmd, strictyaml.Unknown("command", args[0], known))
}
