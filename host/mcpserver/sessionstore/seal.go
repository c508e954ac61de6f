package sessionstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
)

// errSealed says that what is in the store was not sealed under this ID.
var errSealed = errors.New("it was not sealed for this session or call")

// Seal makes of contents what may lie in the store: only who knows the ID can read it, which clients and the replicas that serve them do. The
// store knows the ID's Key.
func Seal(id string, data []byte) string {
	aead := sealer(id)
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(data)+aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawStdEncoding.EncodeToString(aead.Seal(nonce, nonce, data, nil))
}

// Unseal is what was given to Seal with this ID.
func Unseal(id, sealed string) ([]byte, error) {
	data, err := base64.RawStdEncoding.DecodeString(sealed)
	aead := sealer(id)
	if err != nil || len(data) < aead.NonceSize() {
		return nil, errSealed
	}
	if data, err = aead.Open(nil, data[:aead.NonceSize()], data[aead.NonceSize():], nil); err != nil {
		return nil, errSealed
	}
	return data, nil
}

// sealer has a key that the ID's Key does not tell.
func sealer(id string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, []byte(id), nil, "hako mcp contents", 32)
	if err != nil {
		panic(err) // only a longer key would be an error
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // it has the length of one
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the right block
	}
	return aead
}
