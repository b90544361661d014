"""A tiny language model under Hugging Face's Trainer: the host's Python is a large part of each step."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        tokens = torch.randint(0, 256, (32,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main():
    torch.set_num_threads(1)
    config = GPT2Config(vocab_size=256, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=60,
        per_device_train_batch_size=4,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trained = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=Tokens()).train()
    print(f"step_ms {trained.metrics['train_runtime'] / arguments.max_steps * 1e3:.3f}")


if __name__ == "__main__":
    main()
