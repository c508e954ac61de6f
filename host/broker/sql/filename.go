package sqlbroker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Folder is where the databases lie in the host's directory: Folder/PLUGIN/FileName(TENANT).
const Folder = "plugins"

const (
	// extension ends the name of every database.
	extension = ".db"
	// noTenant is the name of the database of callers without a tenant. No tenant has it, because theirs have no @.
	noTenant = "@default"
	// maxName is the longest name that stands for itself, in bytes; file systems take 255, and SQLite appends to it.
	maxName = 200
)

// reserved are names that Windows keeps for devices, whatever follows the first dot.
var reserved = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// FileName returns the name of a tenant's database file: the tenant's, with every byte but a-z, 0-9, "-" and "_" written as "%" and two
// hexadecimal digits, so that tenants never share a file, also where file names know no case. A name that would be longer than 200
// bytes is "@" and its SHA-256. No tenant is "@default".
func FileName(tenant string) string {
	if tenant == "" {
		return noTenant + extension
	}
	var b strings.Builder
	for i := range len(tenant) {
		c := tenant[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
		if plain && !(i == 0 && reserved.MatchString(tenant)) {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02x", c)
	}
	if b.Len() > maxName {
		sum := sha256.Sum256([]byte(tenant))
		return "@" + hex.EncodeToString(sum[:]) + extension
	}
	return b.String() + extension
}

// Tenant returns whose database a file is; ok is false if the name does not tell, or is of no database.
func Tenant(file string) (tenant string, ok bool) {
	name, ok := strings.CutSuffix(file, extension)
	if !ok || name == noTenant {
		return "", ok
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if len(name) < i+3 {
			return "", false
		}
		c, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	if tenant = b.String(); FileName(tenant) != file {
		return "", false
	}
	return tenant, true
}
