// Command vault is HashiCorp Vault without its web interface, as the tests of key management run it.
package main

import (
	"os"

	"github.com/hashicorp/vault/command"
)

func main() {
	os.Exit(command.Run(os.Args[1:]))
}
