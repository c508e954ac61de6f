package mcpconfig

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/app/config"
)

// Server describes a way to reach hako: by starting a program, or at a URL.
type Server struct {
	Program string
	Args    []string
	URL     string
	// Token refers to the token to send. Empty: none is sent.
	Token string
}

// stdioServer is a server of this program with a configuration, which was read in dir. Every path is absolute, because
// clients run the program in a directory of their choice.
func stdioServer(c *config.Config, dir string) (Server, error) {
	program, err := os.Executable()
	if err != nil {
		return Server{}, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return Server{}, err
	}
	args := []string{"serve", "--stdio", "--directory", dir}
	if c.File != "" {
		args = []string{"serve", "--stdio", "--config", c.File}
	}
	for _, list := range []struct {
		key, flag string
		paths     []string
	}{{"plugins", "--plugins", c.Plugins}, {"allowPaths", "--allow-path", c.AllowPaths}} {
		if !strings.HasPrefix(c.Origin(list.key), "flag ") {
			continue
		}
		for _, path := range list.paths {
			args = append(args, list.flag, path)
		}
	}
	return Server{Program: filepath.Clean(program), Args: args}, nil
}

// HTTP is the HTTP server of a configuration, or the one at url if that is not empty. With oauth the client logs its
// user in, and sends no token of the configuration.
func (client Client) HTTP(c *config.Config, url string, oauth bool) (Server, error) {
	switch {
	case client.Token == "":
		return Server{}, errors.New(
			"this client takes only stdio servers in its configuration: leave out --http, --url " +
				"and --oauth")
	case oauth && url == "" && c.HTTP.OAuth.Resource == "":
		return Server{}, errors.New(
			"this configuration has no http.auth.oauth: set up the company login (docs/login.md), " +
				"or name another server with --url")
	}
	s := Server{URL: url}
	if oauth {
		s.URL = cmp.Or(s.URL, c.HTTP.OAuth.Resource) // for which the tokens are
	}
	s.URL = cmp.Or(s.URL, c.HTTP.URL())
	if len(c.HTTP.Auth.Tokens) > 0 && !oauth {
		s.Token = client.Token
	}
	return s, nil
}
