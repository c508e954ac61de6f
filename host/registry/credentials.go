package registry

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

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
			found, err := credentials.Credential(store)(ctx, host)
			var missing *exec.Error
			switch {
			case errors.As(err, &missing):
				return auth.EmptyCredential, fmt.Errorf("%s names the credential helper %s, which is not in the PATH",
					file,
					missing.Name)
			case err != nil:
				return auth.EmptyCredential, fmt.Errorf("%s gives no credential for %s: docker login %[2]s", file, host)
			case found != auth.EmptyCredential:
				return found, nil
			}
		}
		return auth.EmptyCredential, nil
	}
}
