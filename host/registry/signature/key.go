package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"
)

// PublicKey verifies signatures that were made with a key.
type PublicKey struct {
	// ID is "sha256:" and the SHA-256 digest of the key in PKIX form.
	ID string
	// verifiers are for the ways in which signatures of the key are made, at least one.
	verifiers []*verify.Verifier
}

// ReadPublicKey reads a PEM file with a public key: ECDSA, Ed25519, or RSA of at least 2048 bits.
func ReadPublicKey(file string) (*PublicKey, error) {
	text, err := readSmall(file)
	if err != nil {
		return nil, err
	}
	key, err := ParsePublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

// ParsePublicKey is ReadPublicKey for the content of the file.
func ParsePublicKey(text []byte) (*PublicKey, error) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New(
			"it is not a PEM file with a public key, such as the cosign.pub of cosign generate-key-pair")
	case strings.Contains(block.Type, "PRIVATE"):
		return nil, errors.New(
			"it is a private key, which only its owner should have: name the public key, such as cosign.pub")
	case block.Type != "PUBLIC KEY":
		return nil, fmt.Errorf("it has a %q, and not a PUBLIC KEY", block.Type)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return newPublicKey(public)
}

// minRSA is the least size of an RSA key, in bits.
const minRSA = 2048

func newPublicKey(public crypto.PublicKey) (*PublicKey, error) {
	loads := [][]signature.LoadOption{nil}
	switch key := public.(type) {
	case *ecdsa.PublicKey:
	case ed25519.PublicKey:
		// Attestations are signed with Ed25519 itself; cosign signs older payloads with that or with Ed25519ph.
		loads = append(loads, []signature.LoadOption{options.WithED25519ph()})
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSA {
			return nil, fmt.Errorf("it is an RSA key of %d bits, and at least %d are needed", key.N.BitLen(), minRSA)
		}
	default:
		return nil, fmt.Errorf("it is a key of type %T, and must be ECDSA, Ed25519 or RSA", public)
	}
	id, err := keyID(public)
	if err != nil {
		return nil, err
	}
	k := &PublicKey{ID: id}
	for _, load := range loads {
		single, err := signature.LoadDefaultVerifier(public, load...)
		if err != nil {
			return nil, err
		}
		key := root.NewExpiringKey(single, time.Time{}, time.Time{})
		material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier,
			error) {
			return key, nil
		})
		verifier, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(),
			verify.WithoutStatementPredicate())
		if err != nil {
			return nil, err
		}
		k.verifiers = append(k.verifiers, verifier)
	}
	return k, nil
}

// digestPrefix starts digests, those of keys too.
const digestPrefix = "sha256:"

func keyID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return digestPrefix + hex.EncodeToString(sum[:]), nil
}

// PrivateKey signs plugins. ReadPrivateKey and ParsePrivateKey make one.
type PrivateKey struct {
	signer signature.Signer
	public *PublicKey
}

// Signer returns whose signatures the key makes.
func (k *PrivateKey) Signer() Signer { return Signer{Key: k.public.ID} }

// errPassword is about keys that are encrypted.
var errPassword = errors.New("the password does not open the key: set COSIGN_PASSWORD to the right one")

// ReadPrivateKey reads a private key: a file of cosign generate-key-pair or import-key-pair, which password opens, or a
// PEM file that is not encrypted, in the form PKCS #8 or SEC 1.
func ReadPrivateKey(file string, password []byte) (*PrivateKey, error) {
	text, err := readSmall(file)
	if err != nil {
		return nil, err
	}
	key, err := ParsePrivateKey(text, password)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

// ParsePrivateKey is ReadPrivateKey for the content of the file.
func ParsePrivateKey(text, password []byte) (*PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New(
			"it is not a PEM file with a private key, such as the cosign.key of cosign generate-key-pair")
	}
	private, err := parsePrivate(block, password)
	if err != nil {
		return nil, err
	}
	signer, err := signature.LoadDefaultSigner(private)
	if err != nil {
		return nil, fmt.Errorf("it is not an ECDSA, Ed25519 or RSA key: %w", err)
	}
	public, err := signer.PublicKey()
	if err != nil {
		return nil, err
	}
	verifying, err := newPublicKey(public)
	if err != nil {
		return nil, err
	}
	return &PrivateKey{signer, verifying}, nil
}

func parsePrivate(block *pem.Block, password []byte) (crypto.PrivateKey, error) {
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		der, err := encrypted.Decrypt(block.Bytes, password)
		if err != nil {
			return nil, errPassword
		}
		return x509.ParsePKCS8PrivateKey(der)
	case "PRIVATE KEY":
		return x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case "PUBLIC KEY":
		return nil, errors.New("it is a public key: signing needs the private one, such as cosign.key")
	}
	return nil, fmt.Errorf(
		"it has a %q: import it with cosign import-key-pair, or write it as PKCS #8 with openssl pkcs8 "+
			"-topk8 -nocrypt", block.Type)
}
