# Keeps a small world at an address as it should be, with nothing but what is built into terraform.

terraform {
  backend "http" {}
}

variable "world" {
  type = string
}

variable "content" {
  type = string
}

variable "seconds" {
  type    = number
  default = 0
}

data "terraform_remote_state" "world" {
  backend = "http"
  config  = { address = var.world }
}

locals {
  world     = data.terraform_remote_state.world.outputs
  as_wanted = local.world.content == var.content
}

resource "terraform_data" "site" {
  triggers_replace = local.as_wanted ? local.world.stamp : uuid()

  provisioner "local-exec" {
    command     = "sleep $SECONDS_TO_TAKE; wget -q -O /dev/null --post-data=\"$CONTENT ${self.triggers_replace}\" $WORLD"
    environment = { CONTENT = var.content, WORLD = var.world, SECONDS_TO_TAKE = var.seconds }
  }
}

output "content" {
  value = var.content
}
