package broker

// Credential is a secret of the operator in the form in which requests carry it. It is immutable.
type Credential struct {
	// Header and Value are the name and value of the request header that carries it.
	Header, Value string
	// Secrets are the parts of Value that must not reach a guest, the secret itself first. There is at least one.
	Secrets []string
	// Account changes whenever the credential may belong to another account, so that responses for one account are not
	// cached for another. It is not secret and has no meaning outside of this process.
	Account string
	// Public are properties of the credential that the guest may know, such as the company that it belongs to.
	Public map[string]string
	// Renewal is the remedy for the operator if a server refuses the credential, which the guest may show:
	// RenewCommand with the command that renews it, or RenewSetting with the setting that names its source.
	Renewal map[string]string
}

// Keys of Credential.Renewal.
const (
	RenewCommand = "renew_command"
	RenewSetting = "renew_setting"
)
