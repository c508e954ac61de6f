package signature

import (
	"strings"

	"github.com/sigstore/sigstore-go/pkg/verify"
)

// SignAs is Sign for a statement of another type.
func (k *PrivateKey) SignAs(digest, predicate string) ([]byte, error) {
	return k.sign(strings.TrimPrefix(digest, "sha256:"), predicate)
}

// VerifyWithRoot verifies a signature of anybody for anything with the instance of a trusted root.
func VerifyWithRoot(file string, entity verify.SignedEntity) error {
	verifier, err := readInstance(file)
	if err != nil {
		return err
	}
	_, err = verifier.Verify(entity, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithoutIdentitiesUnsafe()))
	return err
}
