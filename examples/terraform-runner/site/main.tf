# A "site" that needs no cloud and no provider download: one file, made by the provider that is built into Terraform.
# It is replaced whenever the file does not say what it should, so drift behind Terraform's back shows in the plan.

terraform {
  backend "local" {} # backendConfig says where: each channel has a state of its own
}

variable "content" {
  type = string
}

variable "channel" {
  type = string
}

locals {
  site      = "${var.channel}.txt"
  stamp     = "${var.channel}.stamp"
  as_wanted = try(filesha256(local.site), "") == sha256(var.content) && fileexists(local.stamp)
}

resource "terraform_data" "site" {
  triggers_replace = local.as_wanted ? file(local.stamp) : uuid()

  provisioner "local-exec" {
    command     = "printf %s \"$CONTENT\" > '${local.site}'; printf %s '${self.triggers_replace}' > '${local.stamp}'"
    environment = { CONTENT = var.content }
  }
}
