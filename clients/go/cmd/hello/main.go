// Command hello prints a first answer.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"umg.example/clients/go/umg"
)

func main() {
	client, err := umg.Connect(os.Getenv("UMG_ADDRESS"), os.Getenv("UMG_API_KEY"), umg.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for text, err := range client.Chat(context.Background(), "famO-5", "Say hello in five languages.") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
	}
}
