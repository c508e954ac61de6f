package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/config"
)

// fetchTime bounds how long a plugin may take to arrive.
const fetchTime = 5 * time.Minute

// addFlags are those of "hako plugin add".
type addFlags struct {
	digest  string
	replace bool
}

func (a *app) pluginAddCommand() *cobra.Command {
	var flags addFlags
	cmd := &cobra.Command{
		Use:   "add FILE|URL",
		Short: "Put a plugin from elsewhere into the plugin folder",
		Long: `Put a plugin, a file or what an https address answers, into the first plugin folder under the name that its manifest has. It is read and
checked before, and nothing of it runs: it is pending until you approve it.

With --digest nothing else than what its author published arrives. Your yes is bound to the digest in any case.`,
		Example: `  hako plugin add https://example.com/weather.wasm --digest sha256:463504be…`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if len(c.Plugins) == 0 {
				return fmt.Errorf("there is no plugin folder: name one with plugins in %s, or with --plugins",
					config.FileName)
			}
			return a.add(cmd.Context(), c, args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.digest, "digest", "", "sha256:HEX, which the file must have")
	cmd.Flags().BoolVar(&flags.replace, "replace", false,
		"take the place of a file of that name; a version in service stays until you approve the new one")
	return cmd
}

func (a *app) add(ctx context.Context, c *config.Config, from string, flags addFlags) error {
	wasm, err := a.pluginFrom(ctx, c, from)
	if err != nil {
		return err
	}
	m, module, err := parsePlugin(wasm)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if flags.digest != "" && !strings.EqualFold(flags.digest, module.Digest) {
		return fmt.Errorf("%s has the digest %s, and not %s: it is not the file that was meant, and nothing was put into the folder", from, module.Digest, flags.digest)
	}
	if err := module.CheckImports(m.Permissions); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	path := filepath.Join(c.Plugins[0], m.Name+".wasm")
	if _, err := os.Lstat(path); err == nil && !flags.replace {
		return fmt.Errorf("%s is there already: --replace puts this one in its place", path)
	}
	operation := &audit.Operation{Action: "plugin.add", Target: audit.Target{Plugin: m.Name, Digest: module.Digest},
		Detail: map[string]string{"version": m.Version, "from": withoutQuery(from)}}
	if err := a.audited(ctx, c, operation, func() error { return placeFile(path, wasm) }); err != nil {
		return err
	}
	err = printf(a.stdout, "%s %s is in %s\n%s\nNext: hako plugin approve %s%s\n", m.Name, m.Version, path,
		module.Digest, m.Name, folders(c))
	return err
}

// pluginFrom reads a file, or what an address answers.
func (a *app) pluginFrom(ctx context.Context, c *config.Config, from string) ([]byte, error) {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return manifest.ReadFile(a.path(from), c.MaxPluginSize)
	}
	if err := checkSource(u); err != nil {
		return nil, err
	}
	wasm, err := fetchPlugin(ctx, c.ProxyURL(), u, c.MaxPluginSize)
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the address, whose query may be a secret
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", withoutQuery(from), err)
	}
	return wasm, nil
}

func fetchPlugin(ctx context.Context, proxy, from *url.URL, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	transport := outbound.NewTransport(proxy)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s: look at the address; what needs a login can be given as a file",
			response.Status)
	}
	wasm, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err == nil && int64(len(wasm)) > most {
		err = fmt.Errorf("it is larger than %s: raise maxPluginSize in %s if that is right", size(int(most)),
			config.FileName)
	}
	return wasm, err
}

func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("it leads on to other addresses without end")
	}
	return checkSource(r.URL)
}

// checkSource holds that what arrives cannot have been changed on the way.
func checkSource(u *url.URL) error {
	if address.IsConfidential(u) {
		return nil
	}
	return fmt.Errorf("%s://%s is not https: what comes from there could be anybody's", u.Scheme, u.Host)
}

// withoutQuery leaves out what may be a secret of an address.
func withoutQuery(from string) string {
	if u, err := url.Parse(from); err == nil && u.Host != "" {
		u.RawQuery, u.Fragment, u.User = "", "", nil
		return u.String()
	}
	return from
}
