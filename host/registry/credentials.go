package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"slices"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// credentialsFrom looks credentials up in files of Docker and Podman and with the helpers that they name. They are read
// when a registry asks for a login. Errors do not repeat what is in the files.
func credentialsFrom(files []string) auth.CredentialFunc {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		for _, file := range files {
			store, err := credentials.NewStore(file, credentials.StoreOptions{})
			if err != nil {
				return auth.EmptyCredential, fmt.Errorf("%s is not a credentials file of Docker or Podman", file)
			}
			for _, key := range credentialKeys(host) {
				found, err := store.Get(ctx, key)
				var missing *exec.Error
				switch {
				case errors.As(err, &missing):
					return auth.EmptyCredential,
						fmt.Errorf("%s names the credential helper %s, which is not in the PATH", file, missing.Name)
				case err != nil:
					return auth.EmptyCredential,
						fmt.Errorf("%s gives no credential for %s: docker login %[2]s", file, host)
				case found != auth.EmptyCredential:
					return found, nil
				}
			}
		}
		return auth.EmptyCredential, nil
	}
}

// credentialKeys returns the keys under which a credential for the host of a request may be stored. Docker stores one
// for Docker Hub under the address of an older API, Podman under docker.io, and both store another host as it was given
// to the login, with a default port too. A credential for one name of this machine is not for another name of it:
// another user's server can listen there.
func credentialKeys(host string) []string {
	name, err := CanonicalRegistry(host)
	switch {
	case err != nil:
		return []string{host}
	case name == dockerHub:
		return slices.Concat([]string{"https://index.docker.io/v1/", dockerHub}, dockerHubHosts)
	case name != host, isLoopback(host), (&url.URL{Host: host}).Port() != "":
		return []string{host}
	}
	return []string{host, host + ":443"}
}
