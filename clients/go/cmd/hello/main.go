// Command hello prints a first answer.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"umg.example/clients/go/umg"
)

func main() {
	client, err := umg.Connect(cmp.Or(os.Getenv("UMG_ADDRESS"), "127.0.0.1:50051"), os.Getenv("UMG_API_KEY"), umg.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for text, err := range client.Chat(context.Background(), "famO-5", "Say hello in five languages.") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
	}
	fmt.Println()
}
