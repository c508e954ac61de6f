package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/registry"
)

func (a *app) pluginPushCommand() *cobra.Command {
	replace, keyFile := false, ""
	cmd := &cobra.Command{
		Use:   "push REFERENCE [FILE|NAME]",
		Short: "Publish a plugin in an OCI registry",
		Long: `Publish a plugin file, or the plugin NAME of the configuration, in a registry. Without FILE it is the
only plugin in this folder or its folder dist. Without a tag in the reference, the tag is the plugin's version.

The login is that of docker login or podman login. wkg, wassette, ORAS and hyper-mcp can read what hako publishes. If
the file says what it was built from, a software bill of materials is attached.

With --sign it is signed, with a key of cosign generate-key-pair, whose password is in COSIGN_PASSWORD, or a private key
in PEM form that is not encrypted. Signing keyless, with an identity, is left to cosign sign.`,
		Example: `  hako plugin push registry.example.com/tools/weather dist/weather.wasm
  hako plugin push registry.example.com/tools/weather dist/weather.wasm --sign cosign.key`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			r, err := registry.ParseReference(args[0])
			if err != nil {
				return err
			}
			file, err := pluginfile.Locate(c, a.path("."), append(args, "")[1])
			if err != nil {
				return err
			}
			if keyFile != "" {
				keyFile = a.path(keyFile)
			}
			p, err := pluginfile.PublishFile(cmd.Context(), c, r, file, keyFile, os.Getenv("COSIGN_PASSWORD"), replace)
			if err != nil {
				return err
			}
			return printf(a.stdout, "%s %s is published\n%s\n%s\n%s\nNext: hako plugin add %s\n", p.Manifest.Name,
				p.Manifest.Version, p.Reference.Digest, p.Materials(), p.Signer, p.Reference)
		},
	}
	cmd.Flags().StringVar(&keyFile, "sign", "", "the file of a private key to sign the plugin with")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace another plugin under that tag")
	return cmd
}
